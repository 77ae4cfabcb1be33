// SPDX-License-Identifier: Apache-2.0
// `scaleUp.batchSize`: how many machines of a pool one decision requests.
import { expect, it } from 'vitest';
import { decide } from './decide.ts';
import type { Plan } from './index.ts';
import { aHost, anInput, aScalingPool, NOW, pods } from './testing/builders.ts';
import { ModelCluster } from './testing/model-cluster.ts';

const PODS = pods(5, { cpu: '3' });
const HOSTS = [aHost('pve1', ['first', 'second'])];
const FIRST = { name: 'first', scaleUp: { batchSize: 2 }, priority: 10 };
const SECOND = aScalingPool({ name: 'second' });

/** How many machines of each pool. */
function created({ steps }: Plan): readonly (readonly [string, number])[] {
  return steps.flatMap((step) =>
    step.kind === 'create' ? [[step.pool, step.machines.length] as const] : [],
  );
}

it('limits a decision, and the next one follows a second later', () => {
  const { plan } = decide(anInput({ pools: [aScalingPool(FIRST)], hosts: HOSTS, pods: PODS }));
  expect(created(plan)).toEqual([['first', 2]]);
  const codes = new Set(plan.refusals.map(({ code }) => code));
  expect([...codes].toSorted()).toEqual(['PodWaitsForBatch', 'PoolBatchFull']);
  expect(plan.nextAt).toBe(NOW + 1_000);
});

it('does not lead to machines of another pool', () => {
  const cluster = new ModelCluster({ pools: [aScalingPool(FIRST), SECOND], hosts: HOSTS });
  cluster.add(PODS);
  const batches = [1, 2, 3].map(() => created(cluster.tick(1_000)));
  expect(batches).toEqual([[['first', 2]], [['first', 2]], [['first', 1]]]);
});

it('leaves what is beyond the limit of the pool to another one', () => {
  const limited = aScalingPool({ ...FIRST, limits: { max: 3 } });
  const { plan } = decide(anInput({ pools: [limited, SECOND], hosts: HOSTS, pods: PODS }));
  expect(created(plan)).toEqual([
    ['first', 2],
    ['second', 2],
  ]);
});
