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
  type MachineOptions,
  MINUTE,
  NOW,
} from './testing/builders.ts';

/** Machines `w-1`, `w-2`, …, unneeded for long enough: the first two have a pod, one is kept as headroom. */
function planFor(count: number, over: (id: number) => MachineOptions = () => ({})) {
  const ids = Array.from({ length: count }, (_, index) => index + 1);
  const since = ids.map((id) => [aMachineId(id), NOW - 10 * MINUTE] as const);
  return decide(
    anInput({
      pools: [aScalingPool({ scaleDown: { maxConcurrent: 10 }, headroom: { machines: 1 } })],
      nodes: ids.map((id) => aWorkerNode(`w-${id}`)),
      machines: ids.map((id) =>
        aScalingMachine({ id, on: `w-${id}`, requestedAt: NOW - 60 * MINUTE + id, ...over(id) }),
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

it('a machine is kept when its pods may be scheduled to a machine for headroom that will be ready soon', () => {
  const { steps, refusals } = planFor(3, (id) => (id === 3 ? { phase: 'joining' } : {}));
  expect(steps).toEqual([]);
  expect(refusals.find(({ subject }) => subject.name === 'w-1')).toMatchObject({
    code: 'NodeKeptAsHeadroom',
    facts: { headroom: 'w-3', nodes: 1 },
  });
});

it('a machine is kept when its pods may be scheduled to any node with headroom that would be lost', () => {
  const ids = [1, 2, 3];
  const since = ids.map((id) => [aMachineId(id), NOW - 10 * MINUTE] as const);
  const { plan } = decide(
    anInput({
      pools: [
        aScalingPool({
          headroom: { cpu: 7, memory: '14Gi' },
          scaleDown: { utilizationThreshold: 1 },
        }),
      ],
      // w-2 has memory for the pod beside its part of the headroom, w-3 has not.
      nodes: ids.map((id) =>
        aWorkerNode(`w-${id}`, id === 2 ? { allocatable: { memory: '16Gi' } } : {}),
      ),
      machines: ids.map((id) => aScalingMachine({ id, on: `w-${id}` })),
      pods: [aPod({ name: 'moving', on: 'w-1', cpu: '10m', memory: '6Gi' })],
      memory: { assignments: {}, unneededSince: Object.fromEntries(since) },
    }),
  );
  expect(plan.steps).toEqual([]);
  expect(plan.refusals.find(({ subject }) => subject.name === 'w-1')).toMatchObject({
    code: 'NodeKeptAsHeadroom',
    facts: { headroom: 'w-3' },
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
