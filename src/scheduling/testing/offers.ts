// SPDX-License-Identifier: Apache-2.0
// Pools for tests.

import type { Resources } from '../../model/resources.ts';
import type { DomainOffer, PoolOffer, SizeOffer } from '../index.ts';
import { ZONE } from './builders.ts';

const GIB = 2 ** 30;

export function resourcesOf(cpu: number, gib: number, pods = 110): Resources {
  return {
    cpuMilli: cpu * 1000,
    memoryBytes: gib * GIB,
    ephemeralStorageBytes: 100 * GIB,
    pods,
    extended: {},
  };
}

/** `4x8`: 4 CPUs and 8 GiB, all allocatable. */
export function aSize(text: string, over: Partial<SizeOffer> = {}): SizeOffer {
  const [cpu = 0, gib = 0] = text.split('x').map(Number);
  return {
    name: text,
    capacity: resourcesOf(cpu, gib),
    allocatable: resourcesOf(cpu, gib),
    ...over,
  };
}

export function aPool(over: Partial<PoolOffer> = {}): PoolOffer {
  return { name: 'pool', labels: {}, taints: [], sizes: [aSize('4x8')], ...over };
}

export function zones(...names: string[]): readonly DomainOffer[] {
  return names.map((name) => ({ name, labels: { [ZONE]: name } }));
}
