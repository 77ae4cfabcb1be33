// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { NodeInfo } from '../state/node-info.ts';
import { aNode } from '../testing/builders.ts';
import { type Bin, Bins, newBin } from './bins.ts';

const WEIGHTS = { cpu: 1, memory: 1 };

function bin(name: string): Bin {
  return newBin(new NodeInfo(0, aNode({ name }), []), 0);
}

function binsWith(...sizes: readonly (readonly [string, number, number])[]): {
  readonly bins: Bins;
  readonly find: (
    cpuMilli: number,
    memoryBytes: number,
    accept?: (name: string) => boolean,
  ) => string | undefined;
  readonly byName: ReadonlyMap<string, Bin>;
} {
  const bins = new Bins(WEIGHTS);
  const byName = new Map(sizes.map(([name]) => [name, bin(name)]));
  for (const [name, cpuMilli, memoryBytes] of sizes) {
    const one = byName.get(name);
    if (one !== undefined) bins.put(one, { cpuMilli, memoryBytes });
  }
  return {
    bins,
    byName,
    find: (cpuMilli, memoryBytes, accept = () => true) =>
      bins.tightest({ cpuMilli, memoryBytes }, ({ nodeInfo }) => accept(nodeInfo.node.name))
        ?.nodeInfo.node.name,
  };
}

describe('the tightest bin', () => {
  test('fits and has the least space left over', () => {
    const { find } = binsWith(['large', 64, 64], ['small', 9, 9], ['tiny', 1, 1]);
    expect(find(8, 8)).toBe('small');
    expect(find(10, 1)).toBe('large');
    expect(find(1, 1)).toBe('tiny');
    expect(find(65, 1)).toBeUndefined();
    expect(find(1, 65)).toBeUndefined();
    expect(find(9, 9)).toBe('small');
  });

  test('is found by exact comparison within a bucket', () => {
    const { find } = binsWith(['a', 1003, 1000], ['b', 1001, 1000], ['c', 1002, 1000]);
    expect(find(1000, 1000)).toBe('b');
    expect(find(1002, 1000)).toBe('c');
    const memory = binsWith(['a', 1000, 1003], ['b', 1000, 1001]);
    expect(memory.find(1000, 1000)).toBe('b');
    expect(memory.find(1000, 1002)).toBe('a');
  });

  test('is found by the weights of CPU and memory', () => {
    const bins = new Bins({ cpu: 10, memory: 1 });
    const [a, b] = [bin('a'), bin('b')];
    bins.put(a, { cpuMilli: 1002, memoryBytes: 1000 });
    bins.put(b, { cpuMilli: 1001, memoryBytes: 1005 });
    expect(bins.tightest({ cpuMilli: 1000, memoryBytes: 1000 }, () => true)).toBe(b);
  });

  test('may be overcommitted in a resource that is not requested', () => {
    const { find } = binsWith(['overcommitted', -5, 100]);
    expect(find(0, 50)).toBe('overcommitted');
    expect(find(1, 50)).toBeUndefined();
    const memory = binsWith(['overcommitted', 100, -5]);
    expect(memory.find(50, 0)).toBe('overcommitted');
    expect(memory.find(50, 1)).toBeUndefined();
  });

  test('must be acceptable', () => {
    const { find } = binsWith(['tight', 8, 8], ['loose', 64, 64]);
    expect(find(8, 8, (name) => name !== 'tight')).toBe('loose');
    expect(find(8, 8, () => false)).toBeUndefined();
  });

  test('is found behind any number of unacceptable bins', () => {
    const sizes = Array.from({ length: 200 }, (_, i) => [`n${i}`, 1000, 1000] as const);
    const { find } = binsWith(...sizes);
    expect(find(1000, 1000, (name) => name === 'n199')).toBe('n199');
    let checks = 0;
    find(1, 1, () => {
      checks += 1;
      return true;
    });
    expect(checks).toBeLessThan(40);
  });
});

describe('Bins', () => {
  test('re-sorts a bin when its free space changes', () => {
    const { bins, byName, find } = binsWith(['a', 64, 64], ['b', 32, 32]);
    const a = byName.get('a');
    if (a === undefined) throw new Error('no bin');
    bins.put(a, { cpuMilli: 4, memoryBytes: 64 });
    expect(find(30, 30)).toBe('b');
    expect(find(33, 1)).toBeUndefined();
    expect(find(4, 64)).toBe('a');
    // Also within its bucket.
    bins.put(a, { cpuMilli: 4, memoryBytes: 65 });
    expect(find(4, 65)).toBe('a');
  });

  test('allows dropping a bin repeatedly and adding it again', () => {
    const { bins, byName, find } = binsWith(['a', 8, 8], ['b', 8, 8], ['c', 8, 8]);
    const [a, b, c] = [...byName.values()];
    if (a === undefined || b === undefined || c === undefined) throw new Error('no bins');
    bins.drop(a);
    bins.drop(a);
    expect([...bins.all()].map(({ nodeInfo }) => nodeInfo.node.name).sort()).toEqual(['b', 'c']);
    bins.drop(c);
    expect(find(8, 8)).toBe('b');
    bins.drop(b);
    expect(find(8, 8)).toBeUndefined();
    bins.put(a, { cpuMilli: 8, memoryBytes: 8 });
    expect(find(8, 8)).toBe('a');
    expect([...bins.all()]).toEqual([a]);
  });
});
