// SPDX-License-Identifier: Apache-2.0
// Plans for pods without constraints, where something else than requests decides too.

import { describe, expect, test } from 'vitest';
import type { Pod } from '../../model/pod.ts';
import { type Packing, type PoolOffer, pack, type Snapshot } from '../index.ts';
import { aCluster, aPod, type PodOptions, ZONE } from '../testing/builders.ts';
import { aPool, aSize, zones } from '../testing/offers.ts';
import { replay } from '../testing/replay.ts';

/** First-fit-decreasing by CPU needs one machine less than the usual order for these. */
const CPUS = [5, 5, 4, 4, 3, 3, 2, 2, 2, 2];

function pods(spec: PodOptions = {}): readonly Pod[] {
  return CPUS.map((cpu, i) =>
    aPod({ ...spec, name: `${spec.name ?? 'p'}-${i}`, ...asking(cpu, spec) }),
  );
}

function asking(cpu: number, { spec }: PodOptions): PodOptions {
  return { spec: { containers: [{ resources: { requests: { cpu: `${cpu}` } } }], ...spec } };
}

function packed(snapshot: Snapshot, all: readonly Pod[], pools: readonly PoolOffer[]): Packing {
  const packing = pack(snapshot, all, { pools });
  expect(replay(snapshot, packing, 'one by one')).toEqual([]);
  expect(packing.unplaced).toEqual([]);
  return packing;
}

function costs(packing: Packing, sizes: PoolOffer['sizes']): number {
  const prices = new Map(Array.isArray(sizes) ? sizes.map(({ name, price }) => [name, price]) : []);
  return packing.machines.reduce((sum, { size }) => sum + (prices.get(size.name) ?? 0), 0);
}

const SIZES = [aSize('8x64', { price: 8 }), aSize('10x64', { price: 9 })];

describe('a plan for pods without constraints', () => {
  test('uses the sizes with the lowest total price', () => {
    // 32 CPUs: 10 + 10 + 10 + 2 would need four machines at 35, four full ones of 8 cost 32.
    const packing = packed(aCluster({ nodes: [] }), pods(), [aPool({ sizes: SIZES })]);
    expect(costs(packing, SIZES)).toBe(32);
  });

  test('prefers pools of higher priority, even if they are more expensive', () => {
    const cheap = aPool({ name: 'cheap', sizes: [aSize('8x64', { price: 1 })] });
    const first = aPool({ name: 'first', sizes: SIZES, priority: 1 });
    const packing = packed(aCluster({ nodes: [] }), pods(), [cheap, first]);
    expect(new Set(packing.machines.map(({ pool }) => pool))).toEqual(new Set(['first']));
  });

  test('keeps pods with different node selectors apart', () => {
    const pool = aPool({ sizes: SIZES, domains: zones('a', 'b') });
    const all = ['a', 'b'].flatMap((zone) =>
      pods({ name: zone, spec: { nodeSelector: { [ZONE]: zone } } }),
    );
    const packing = packed(aCluster({ nodes: [] }), all, [pool]);
    expect(costs(packing, SIZES)).toBe(64);
    for (const { domain, pods: own } of packing.machines)
      expect(own.every(({ name }) => name.startsWith(domain))).toBe(true);
  });

  test('leaves space for daemon pods', () => {
    const daemonSets = [
      {
        metadata: { name: 'd' },
        spec: { template: { spec: { containers: [{ resources: { limits: { cpu: '1' } } }] } } },
      },
    ];
    const packing = packed(aCluster({ nodes: [], daemonSets }), pods(), [aPool({ sizes: SIZES })]);
    for (const { size, pods: own, daemons } of packing.machines) {
      const used = own.reduce((sum, { requests }) => sum + requests.cpuMilli, 0);
      expect(daemons).toHaveLength(1);
      expect(used + 1000).toBeLessThanOrEqual(size.allocatable.cpuMilli);
    }
  });

  test('is not carried out where a limit leaves pods without a machine', () => {
    const pool = aPool({ sizes: SIZES, limits: { machines: 4, cpuMilli: 40_000 } });
    expect(packed(aCluster({ nodes: [] }), pods(), [pool]).machines).toHaveLength(4);
  });

  test('fills existing nodes first', () => {
    const snapshot = aCluster({
      nodes: [{ name: 'old', allocatable: { cpu: '8', memory: '64Gi' } }],
    });
    const packing = packed(snapshot, pods(), [aPool({ sizes: SIZES })]);
    expect(packing.existing.length).toBeGreaterThan(0);
    expect(costs(packing, SIZES)).toBe(24);
  });
});
