// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { byLargestPod, ordersOf, setSizes } from './replacement-sets.ts';
import { candidatesOf } from './testing/candidates.ts';

const CANDIDATES = candidatesOf(
  Array.from({ length: 12 }, (_, index) => ({ cpu: `${100 + index}m`, memory: '64Mi' })),
);

function namesOf(order: ReturnType<typeof ordersOf>[number] | undefined): readonly string[] {
  return order?.map(({ node }) => node.name) ?? [];
}

it('the first search tries the least utilized machines first', () => {
  expect(ordersOf(CANDIDATES, 0)[0]).toEqual(CANDIDATES);
});

it('each later search tries other sets, and the same search the same ones', () => {
  const firsts = [0, 1, 2, 3].map((search) => namesOf(ordersOf(CANDIDATES, search)[0]));
  expect(new Set(firsts.map((names) => names.join())).size).toBe(4);
  for (const names of firsts) expect(names.toSorted()).toEqual(namesOf(CANDIDATES).toSorted());
  expect(namesOf(ordersOf(CANDIDATES, 3)[0])).toEqual(firsts[3]);
});

it('a later search begins with sets of other sizes', () => {
  const orders = ordersOf(CANDIDATES, 0);
  expect(setSizes(orders, 0).slice(0, 3)).toEqual([2, 3, 4]);
  expect(setSizes(orders, 1).slice(0, 3)).toEqual([8, 10, 12]);
  expect(setSizes(orders, 1).toSorted()).toEqual(setSizes(orders, 0).toSorted());
});

it('machines with large pods come first, by CPU or memory', () => {
  const candidates = candidatesOf([
    { cpu: '1', memory: '64Mi' },
    { cpu: '3', memory: '64Mi' },
    { cpu: '100m', memory: '4Gi' },
  ]);
  expect(namesOf(byLargestPod(candidates))).toEqual(['n-2', 'n-3', 'n-1']);
});
