// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { decide } from './decide.ts';
import type { ScalingInput, ScalingMemory } from './index.ts';
import { EMPTY_MEMORY, rememberRequested } from './index.ts';
import {
  aMachineId,
  anInput,
  aPod,
  aScalingMachine,
  aWorkerNode,
  type MachineOptions,
  MINUTE,
  NOW,
} from './testing/builders.ts';

const WAITING = aPod({ name: 'waiting', cpu: '3500m', memory: '1Gi' });

/** Machines that were requested for a pod that is still pending, each with this outcome. */
function tried(
  outcomes: readonly MachineOptions[],
  over: Partial<ScalingInput> = {},
): ScalingInput {
  const machines = outcomes.map((outcome, index) =>
    aScalingMachine({ id: index + 1, requestedAt: NOW - 60 * MINUTE + index, ...outcome }),
  );
  const memory = rememberRequested(
    EMPTY_MEMORY,
    machines.map(({ id }) => ({ id, pods: [WAITING.uid] })),
  );
  const nodes = outcomes.flatMap(({ on }) =>
    on === undefined ? [] : [aWorkerNode(on, { allocatable: { cpu: '3' } })],
  );
  return { ...anInput({ machines, nodes, memory, pods: [WAITING] }), ...over };
}

const NEVER_JOINED: MachineOptions = { phase: 'failed' };
const useless = (id: number): MachineOptions => ({ on: `w-${id}`, readySince: NOW - MINUTE });

it('pauses the pool after three machines in a row that helped no pod or never joined', () => {
  const { pauses, plan, memory } = decide(tried([useless(1), NEVER_JOINED, useless(3)]));
  expect(pauses).toEqual([
    {
      pool: 'workers',
      since: NOW,
      until: NOW + 30 * MINUTE,
      reason:
        '3 machines in a row helped no pod, so it is paused for 30m: w-1 has been ready for 60s, and its pod was not scheduled to it; workers-2 never joined; w-3 has been ready for 60s, and its pod was not scheduled to it',
    },
  ]);
  expect(plan.steps).toEqual([]);
  expect(plan.refusals.map(({ code }) => code)).toContain('PoolPaused');
  expect(memory).toMatchObject({ trials: {}, streaks: {} });
});

it('does not pause it after two, remembers them, and pauses it after the third', () => {
  const first = decide(tried([useless(1), useless(2)]));
  expect(first.pauses).toEqual([]);
  expect(first.memory.streaks?.['workers']).toHaveLength(2);
  const third = tried([NEVER_JOINED]);
  const memory: ScalingMemory = {
    ...third.memory,
    ...(first.memory.streaks && { streaks: first.memory.streaks }),
  };
  expect(decide({ ...third, memory }).pauses).toHaveLength(1);
});

it('starts to count again after a machine that helped a pod', () => {
  const input = tried([useless(1), NEVER_JOINED, { on: 'w-3' }, useless(4)]);
  const running = aPod({ name: 'running', on: 'w-3', cpu: '100m' });
  const { snapshot } = anInput({
    nodes: input.snapshot.nodes,
    pods: [running],
  });
  const { pauses, memory } = decide({ ...input, snapshot });
  expect(pauses).toEqual([]);
  expect(memory.streaks?.['workers']).toHaveLength(1);
});

it('does not judge a machine whose pods fit and may still be scheduled, nor one whose pods are gone', () => {
  const fresh = tried([{ on: 'w-1', readySince: NOW - MINUTE }]);
  const { snapshot } = anInput({ nodes: [aWorkerNode('w-1')] });
  const undecided = decide({ ...fresh, snapshot });
  expect(Object.keys(undecided.memory.trials ?? {})).toEqual([aMachineId(1)]);
  const old = { ...useless(1), readySince: NOW - 3 * MINUTE };
  const gone = decide({ ...tried([old]), pending: [] });
  expect(gone.pauses).toEqual([]);
  expect(gone.memory.trials).toEqual({});
});

it('judges a machine after two minutes even if its pods fit', () => {
  const input = tried([{ on: 'w-1', readySince: NOW - 2 * MINUTE }]);
  const { snapshot } = anInput({ nodes: [aWorkerNode('w-1')] });
  expect(decide({ ...input, snapshot }).memory.streaks?.['workers']).toHaveLength(1);
});

it('neither counts a machine that is removed, nor starts to count again because of it', () => {
  const removed: MachineOptions = { on: 'w-2', isDraining: true };
  const { pauses, memory } = decide(tried([useless(1), removed, useless(3)]));
  expect(pauses).toEqual([]);
  expect(memory.streaks?.['workers']).toHaveLength(2);
});

it('counts a machine that failed while it is still being deleted', () => {
  const failed: MachineOptions = { phase: 'deleting', isBeingDeleted: true, hasFailed: true };
  const { pauses } = decide(tried([failed, NEVER_JOINED, failed]));
  expect(pauses).toHaveLength(1);
  const { hasFailed: _, ...removed } = failed;
  expect(decide(tried([removed, NEVER_JOINED, removed])).memory.streaks?.['workers']).toHaveLength(
    1,
  );
});
