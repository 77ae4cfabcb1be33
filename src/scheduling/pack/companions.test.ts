// SPDX-License-Identifier: Apache-2.0
// Pods that must run on the node of other pods, or all on one node.
import { expect, test } from 'vitest';
import type { Pod } from '../../model/pod.ts';
import type { PodSpecSource } from '../../model/pod-source.ts';
import { type Packing, type PoolOffer, pack, Snapshot } from '../index.ts';
import { aPod, HOSTNAME, select } from '../testing/builders.ts';
import { aPool, aSize } from '../testing/offers.ts';
import { replay } from '../testing/replay.ts';

const EMPTY = Snapshot.of({ nodes: [] });
const POOLS: readonly PoolOffer[] = [
  aPool({ name: 'small', sizes: [aSize('2x4')] }),
  aPool({ name: 'large', sizes: [aSize('4x8')] }),
];

function terms(app: string) {
  return {
    requiredDuringSchedulingIgnoredDuringExecution: [
      { topologyKey: HOSTNAME, labelSelector: select({ app }) },
    ],
  };
}

function near(app: string): PodSpecSource {
  return { affinity: { podAffinity: terms(app) } };
}

function apart(app: string): PodSpecSource {
  return { affinity: { podAntiAffinity: terms(app) } };
}

function some(
  count: number,
  app: string,
  { cpu, spec = {} }: { readonly cpu: string; readonly spec?: PodSpecSource },
): readonly Pod[] {
  return Array.from({ length: count }, (_, i) =>
    aPod({ name: `${app}-${i}`, labels: { app }, cpu, memory: '64Mi', spec }),
  );
}

function packed(...pods: readonly (readonly Pod[])[]): Packing {
  const packing = pack(EMPTY, pods.flat(), { pools: POOLS });
  expect(replay(EMPTY, packing)).toEqual([]);
  return packing;
}

function sizesOf({ machines }: Packing): readonly string[] {
  return machines.map(({ pool }) => pool).toSorted();
}

test('pods that must run on one node get one that holds them all', () => {
  const packing = packed(some(6, 'web', { cpu: '500m', spec: near('web') }));
  expect(packing.unplaced).toEqual([]);
  expect(sizesOf(packing)).toEqual(['large']);
});

test('of pods that must run on one node, as many get a machine as the largest one holds', () => {
  const packing = packed(some(9, 'web', { cpu: '500m', spec: near('web') }));
  expect(packing.unplaced).toHaveLength(1);
  expect(sizesOf(packing)).toEqual(['large']);
});

test('many pods that must run beside others share as few machines as hold them', () => {
  const pools = [aPool({ name: 'large', sizes: [aSize('4x8')] })];
  const pods = [
    ...some(402, 'cache', { cpu: '900m' }),
    ...some(402, 'web', { cpu: '950m', spec: near('cache') }),
  ];
  const packing = pack(EMPTY, pods, { pools });
  expect(packing.unplaced).toEqual([]);
  expect(packing.machines).toHaveLength(201);
});

test('pods that must run beside others share machines with them that hold all', () => {
  const packing = packed(
    some(2, 'cache', { cpu: '500m' }),
    some(4, 'web', { cpu: '500m', spec: near('cache') }),
  );
  expect(packing.unplaced).toEqual([]);
  expect(sizesOf(packing)).toEqual(['large']);
});

test('pods that must run beside others are distributed with them when one machine cannot hold all', () => {
  const packing = packed(
    some(6, 'cache', { cpu: '500m' }),
    some(18, 'web', { cpu: '500m', spec: near('cache') }),
  );
  expect(packing.unplaced).toEqual([]);
  expect(packing.machines).toHaveLength(3);
});

test('pods that must run beside others get as many machines as those that exclude each other', () => {
  const packing = packed(
    some(3, 'cache', { cpu: '500m', spec: apart('cache') }),
    some(6, 'web', { cpu: '1', spec: near('cache') }),
  );
  expect(packing.unplaced).toEqual([]);
});

test('pods that must run beside others that must run beside a third workload share its machine', () => {
  const packing = packed(
    some(1, 'db', { cpu: '500m' }),
    some(3, 'cache', { cpu: '500m', spec: near('db') }),
    some(3, 'web', { cpu: '300m', spec: near('cache') }),
  );
  expect(packing.unplaced).toEqual([]);
  expect(sizesOf(packing)).toEqual(['large']);
});

test('the other pods are packed onto few machines beside pods that must run together', () => {
  const packing = packed(
    some(2, 'cache', { cpu: '500m' }),
    some(4, 'web', { cpu: '500m', spec: near('cache') }),
    some(10, 'other', { cpu: '700m' }),
  );
  expect(packing.unplaced).toEqual([]);
  // Ten CPUs are requested.
  expect(packing.machines).toHaveLength(3);
});

test('pods that must run beside pods that fit on no machine get none', () => {
  const packing = packed(
    some(1, 'cache', { cpu: '5' }),
    some(1, 'web', { cpu: '1', spec: near('cache') }),
  );
  expect(packing.machines).toEqual([]);
  expect(packing.unplaced).toHaveLength(2);
});
