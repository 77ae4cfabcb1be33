// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { decide } from './decide.ts';
import {
  aMachineId,
  anInput,
  aPod,
  aScalingMachine,
  aScalingPool,
  aWorkerNode,
  MINUTE,
  NOW,
} from './testing/builders.ts';

/** Machines `w-1`, `w-2`, …, unneeded for long enough: the first two have a pod, one is kept as headroom. */
function planFor(count: number) {
  const ids = Array.from({ length: count }, (_, index) => index + 1);
  const since = ids.map((id) => [aMachineId(id), NOW - 10 * MINUTE] as const);
  return decide(
    anInput({
      pools: [aScalingPool({ scaleDown: { maxConcurrent: 10 }, headroom: { machines: 1 } })],
      nodes: ids.map((id) => aWorkerNode(`w-${id}`)),
      machines: ids.map((id) =>
        aScalingMachine({ id, on: `w-${id}`, requestedAt: NOW - 60 * MINUTE + id }),
      ),
      pods: [
        aPod({ name: 'small', on: 'w-1', cpu: '1', memory: '100Mi' }),
        aPod({ name: 'large', on: 'w-2', cpu: '2500m', memory: '100Mi' }),
      ],
      memory: { assignments: {}, unneededSince: Object.fromEntries(since) },
    }),
  ).plan;
}

function drained(count: number): readonly string[] {
  return planFor(count).steps.map((step) => (step.kind === 'drain' ? step.node : step.kind));
}

it('a machine is kept when its pods may be scheduled to the node that is kept as headroom', () => {
  // The pod fits on w-2, but the scheduler prefers w-3, which is empty.
  expect(drained(3)).toEqual([]);
  expect(planFor(3).refusals.find(({ subject }) => subject.name === 'w-1')).toMatchObject({
    code: 'NodeKeptAsHeadroom',
    reason:
      'node w-1 is kept: its pods may be scheduled to node w-3, and then the headroom on 1 node would be lost',
    facts: { headroom: 'w-3', nodes: 1 },
  });
});

it('a machine is kept when its pods may be scheduled to headroom of one pool, although they fit on that of another', () => {
  const since = [1, 2, 3, 4].map((id) => [aMachineId(id), NOW - 10 * MINUTE] as const);
  const { plan } = decide(
    anInput({
      pools: [
        aScalingPool({ name: 'small', limits: { min: 2 }, headroom: { cpu: 1 } }),
        aScalingPool({ headroom: { machines: 1 } }),
      ],
      nodes: [
        ...[1, 2].map((id) =>
          aWorkerNode(`s-${id}`, { labels: { 'autoscaler.proxmox/group': 'small' } }),
        ),
        ...[3, 4].map((id) => aWorkerNode(`w-${id}`)),
      ],
      machines: [
        ...[1, 2].map((id) => aScalingMachine({ id, pool: 'small', on: `s-${id}` })),
        ...[3, 4].map((id) => aScalingMachine({ id, on: `w-${id}` })),
      ],
      pods: [
        ...[1, 2].map((id) => aPod({ name: `on-${id}`, on: `s-${id}`, cpu: '1', memory: '1Gi' })),
        aPod({ name: 'moving', on: 'w-3', cpu: '1', memory: '1Gi' }),
      ],
      memory: { assignments: {}, unneededSince: Object.fromEntries(since) },
    }),
  );
  expect(plan.steps).toEqual([]);
  expect(plan.refusals.find(({ subject }) => subject.name === 'w-3')).toMatchObject({
    code: 'NodeKeptAsHeadroom',
    facts: { headroom: 'w-4', nodes: 2 },
  });
});

it('of two empty machines one is removed, and no machine with pods at the same time', () => {
  expect(drained(4)).toEqual(['w-4']);
});

it('checks a limited number of machines in one decision', () => {
  const ids = Array.from({ length: 150 }, (_, index) => index + 1);
  const since = ids.map((id) => [aMachineId(id), NOW - 10 * MINUTE] as const);
  const { plan } = decide(
    anInput({
      pools: [aScalingPool({ limits: { max: 200 }, headroom: { machines: 1 } })],
      nodes: [...ids, 151].map((id) => aWorkerNode(`w-${id}`)),
      machines: ids.map((id) => aScalingMachine({ id, on: `w-${id}` })),
      pods: ids.map((id) => aPod({ name: `on-${id}`, on: `w-${id}`, cpu: '1', memory: '1Gi' })),
      memory: { assignments: {}, unneededSince: Object.fromEntries(since) },
    }),
  );
  const reasons = plan.refusals.filter(({ code }) => code === 'NodeKeptAsHeadroom');
  const unchecked = reasons.filter(({ reason }) => reason.includes('at a time'));
  expect(reasons.length - unchecked.length).toBe(100);
  expect(unchecked.length).toBeGreaterThan(0);
});
