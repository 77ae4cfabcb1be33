// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addResources,
  findShortfalls,
  formatAmount,
  formatResources,
  NO_RESOURCES,
  parseResources,
  type Resources,
  resourceQuantities,
  resourcesFit,
  subtractResources,
} from './resources.ts';

function resources(source: Readonly<Record<string, string | number>>): Resources {
  const parsed = parseResources(source);
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.value;
}

describe('parseResources', () => {
  test('reads CPU in thousandths and everything else in units, rounded up', () => {
    const source = {
      cpu: '1.5001',
      memory: '1Gi',
      'ephemeral-storage': '1500m',
      pods: '110',
      'nvidia.com/gpu': '1',
      'hugepages-2Mi': '4Mi',
    };
    expect(resources(source)).toEqual({
      cpuMilli: 1501,
      memoryBytes: 2 ** 30,
      ephemeralStorageBytes: 2,
      pods: 110,
      extended: { 'nvidia.com/gpu': 1, 'hugepages-2Mi': 2 ** 22 },
    });
  });

  test('accepts numbers, omits zeros and accepts an empty map', () => {
    expect(resources({ cpu: 2, memory: 0.5 }).cpuMilli).toBe(2000);
    expect(resources({ memory: 0.5 }).memoryBytes).toBe(1);
    expect(resources({ 'nvidia.com/gpu': '0' })).toEqual(NO_RESOURCES);
    expect(resources({})).toEqual(NO_RESOURCES);
  });

  test('caps amounts at the largest safe integer', () => {
    expect(resources({ memory: '1Ei' }).memoryBytes).toBe(Number.MAX_SAFE_INTEGER);
    expect(resources({ cpu: '1e1000' }).cpuMilli).toBe(Number.MAX_SAFE_INTEGER);
  });

  test.each([
    [{ memory: '16GB' }, "resource 'memory': unknown suffix 'GB'; did you mean 'G' or 'Gi'?"],
    [{ cpu: '-1' }, "resource 'cpu' must not be negative"],
    [{ 'a/b/c': '1' }, "resource name: key 'a/b/c' has more than one '/'"],
  ])('refuses %j: %s', (source, problem) => {
    expect(parseResources(source)).toEqual({ ok: false, problem });
  });
});

describe('resource arithmetic', () => {
  test('adds every resource', () => {
    const one = resources({
      cpu: '500m',
      memory: '1Ki',
      'ephemeral-storage': '1',
      pods: '1',
      'a/b': '1',
    });
    const other = resources({
      cpu: '1',
      memory: '1',
      'ephemeral-storage': '2',
      pods: '2',
      'a/c': '1',
    });
    expect(addResources(one, other)).toEqual({
      cpuMilli: 1500,
      memoryBytes: 1025,
      ephemeralStorageBytes: 3,
      pods: 3,
      extended: { 'a/b': 1, 'a/c': 1 },
    });
  });

  test('subtracts below zero and omits zeros', () => {
    const one = resources({ cpu: '1', 'a/b': '1', 'a/c': '1' });
    const other = resources({
      cpu: '2',
      memory: '1',
      'ephemeral-storage': '2',
      pods: '3',
      'a/b': '1',
      'a/d': '1',
    });
    expect(subtractResources(one, other)).toEqual({
      cpuMilli: -1000,
      memoryBytes: -1,
      ephemeralStorageBytes: -2,
      pods: -3,
      extended: { 'a/c': 1, 'a/d': -1 },
    });
  });

  test('caps a sum at the largest safe integer', () => {
    const huge = resources({
      cpu: '1E',
      memory: '1Ei',
      'ephemeral-storage': '1Ei',
      pods: '1E',
      'a/b': '1E',
    });
    const sum = addResources(huge, huge);
    expect(sum).toEqual(huge);
  });

  test('counts a resource named like an inherited object property', () => {
    const odd = resources({ constructor: '2' });
    expect(addResources(NO_RESOURCES, odd).extended).toEqual({ constructor: 2 });
    expect(resourcesFit(odd, NO_RESOURCES)).toBe(false);
  });
});

describe('resourcesFit and findShortfalls', () => {
  const node = resources({
    cpu: '2',
    memory: '4Gi',
    'ephemeral-storage': '10Gi',
    pods: '10',
    'a/gpu': '1',
  });

  test.each([
    [{}, []],
    [{ cpu: '2', memory: '4Gi', 'ephemeral-storage': '10Gi', pods: '10', 'a/gpu': '1' }, []],
    [{ cpu: '2001m' }, [['cpu', 2001, 2000]]],
    [{ memory: '5Gi' }, [['memory', 5 * 2 ** 30, 4 * 2 ** 30]]],
    [{ 'ephemeral-storage': '11Gi' }, [['ephemeral-storage', 11 * 2 ** 30, 10 * 2 ** 30]]],
    [{ pods: '11' }, [['pods', 11, 10]]],
    [{ 'a/gpu': '2' }, [['a/gpu', 2, 1]]],
    [
      { cpu: '3', 'a/fpga': '1' },
      [
        ['cpu', 3000, 2000],
        ['a/fpga', 1, 0],
      ],
    ],
  ])('report that %j lacks %j', (source, missing) => {
    const needed = resources(source);
    expect(resourcesFit(needed, node)).toBe(missing.length === 0);
    expect(findShortfalls(needed, node)).toEqual(
      missing.map(([resource, needed, available]) => ({ resource, needed: needed, available })),
    );
  });

  test('let a request of 0 fit where the resource is overcommitted', () => {
    const overcommitted = subtractResources(NO_RESOURCES, resources({ memory: '1', 'a/gpu': '1' }));
    expect(resourcesFit(NO_RESOURCES, overcommitted)).toBe(true);
    expect(findShortfalls(NO_RESOURCES, overcommitted)).toEqual([]);
  });
});

describe('formatting of resources', () => {
  test.each([
    ['cpu', 1500, '1500m'],
    ['cpu', 2000, '2'],
    ['memory', 2 ** 30, '1Gi'],
    ['ephemeral-storage', 2 ** 20, '1Mi'],
    ['hugepages-1Gi', 2 ** 31, '2Gi'],
    ['pods', 110, '110'],
    ['a/gpu', 2048, '2048'],
  ])('formats %s %d as %s', (resource, amount, text) => {
    expect(formatAmount(resource, amount)).toBe(text);
  });

  test('formats for people and as a map to parse back', () => {
    const some = resources({ cpu: '500m', memory: '1Gi', 'a/gpu': '1' });
    expect(formatResources(some)).toBe('cpu 500m, memory 1Gi, a/gpu 1');
    expect(resourceQuantities(some)).toEqual({ cpu: '500m', memory: '1Gi', 'a/gpu': '1' });
    expect(formatResources(NO_RESOURCES)).toBe('nothing');
  });
});

describe('all resources', () => {
  const amount = fc.nat({ max: 2 ** 40 });
  const any: fc.Arbitrary<Resources> = fc.record({
    cpuMilli: amount,
    memoryBytes: amount,
    ephemeralStorageBytes: amount,
    pods: amount,
    extended: fc.dictionary(
      fc.constantFrom('a/x', 'a/y', 'constructor'),
      fc.integer({ min: 1, max: 9 }),
      {
        noNullPrototype: true,
      },
    ),
  });

  test('are restored by subtracting what was added', () => {
    fc.assert(
      fc.property(any, any, (one, other) => {
        expect(subtractResources(addResources(one, other), other)).toEqual(one);
      }),
    );
  });

  test('fit if and only if there is no shortfall', () => {
    fc.assert(
      fc.property(any, any, (needed, available) => {
        expect(resourcesFit(needed, available)).toBe(
          findShortfalls(needed, available).length === 0,
        );
        expect(resourcesFit(needed, addResources(needed, available))).toBe(true);
      }),
    );
  });

  test('parse back from their quantities', () => {
    fc.assert(
      fc.property(any, (one) => {
        expect(resources(resourceQuantities(one))).toEqual(one);
      }),
    );
  });
});
