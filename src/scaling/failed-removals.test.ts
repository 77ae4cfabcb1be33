// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Pod } from '../model/pod.ts';
import { decide } from './decide.ts';
import type { ScalingInput, ScalingMemory } from './index.ts';
import {
  aMachineId,
  anInput,
  aPod,
  aScalingMachine,
  aScalingPool,
  aWorkerNode,
  MINUTE,
  NOW,
  SETTINGS,
} from './testing/builders.ts';

const HOUR = 60 * MINUTE;
const UNNEEDED_MS = 2 * MINUTE;
const POOLS = [
  aScalingPool({ scaleDown: { unneededTime: '2m', maxConcurrent: 1, delayAfterAdd: '0s' } }),
];

/** A pod of the workload that is moved. */
function web(name: string, over: Parameters<typeof aPod>[0] = {}): Pod {
  const pod = aPod({ name, cpu: '500m', memory: '100Mi', ...over });
  return { ...pod, controller: { kind: 'ReplicaSet', name: 'web', uid: 'web' } };
}

/** A pod of another workload that fills most of its node. */
function filler(node: string, cpu = '3500m'): Pod {
  const pod = aPod({ name: `filler-${node}`, on: node, cpu, memory: '100Mi' });
  return { ...pod, controller: { kind: 'ReplicaSet', name: 'filler', uid: 'filler' } };
}

interface Options {
  readonly machines: readonly number[];
  readonly pods: readonly Pod[];
  readonly memory?: Partial<ScalingMemory>;
  readonly now?: number;
}

/** Machines 1, 2, … with nodes w-1, w-2, …, each unneeded for long enough if it can be. */
function cluster({ machines, pods, memory = {}, now = NOW }: Options): ScalingInput {
  return anInput({
    now,
    pools: POOLS,
    nodes: machines.map((id) => aWorkerNode(`w-${id}`)),
    machines: machines.map((id) => aScalingMachine({ id, on: `w-${id}` })),
    pods,
    memory: {
      ...memory,
      assignments: {},
      unneededSince: Object.fromEntries(machines.map((id) => [aMachineId(id), now - UNNEEDED_MS])),
    },
  });
}

/** Machine 1 is removed; its pod would fit on w-2. */
const REMOVAL: Options = {
  machines: [1, 2],
  pods: [web('a', { on: 'w-1' }), web('b', { on: 'w-2' })],
};

function removal(memory: Partial<ScalingMemory> = {}, now = NOW) {
  return decide(cluster({ ...REMOVAL, memory, now }));
}

/** The pod of machine 1 has been created again, and fits no more. */
const WAITING: Options = {
  machines: [2],
  pods: [web('a-again'), web('b', { on: 'w-2' }), filler('w-2')],
};

/** Two machines, either of which could be removed. */
const RUNNING: Options = {
  machines: [2, 3],
  pods: [web('a-again', { on: 'w-3' }), web('b', { on: 'w-2' })],
};

function drained(input: ScalingInput): readonly string[] {
  return decide(input).plan.steps.flatMap((step) => (step.kind === 'drain' ? [step.node] : []));
}

describe('a removal after which a pod needs a new machine', () => {
  const first = removal();
  const failed = decide(cluster({ ...WAITING, memory: first.memory }));

  it('has failed: machines with pods of that workload are kept for the unneeded time', () => {
    expect(first.plan.steps.map(({ kind }) => kind)).toEqual(['drain']);
    expect(failed.plan.steps.map(({ kind }) => kind)).toEqual(['create']);
    const at = (now: number) => cluster({ ...RUNNING, memory: failed.memory, now });
    expect(drained(at(NOW + UNNEEDED_MS - 1))).toEqual([]);
    expect(drained(at(NOW + UNNEEDED_MS))).toHaveLength(1);
    const { plan } = decide(at(NOW + MINUTE));
    expect(plan.refusals).toContainEqual({
      subject: { kind: 'node', name: 'w-2' },
      code: 'NodePodsWaitedBefore',
      reason:
        'node w-2 is kept for 60s: when a machine with pods like default/b was drained, pods found no other node',
      facts: { pod: 'default/b', removals: 1, remainingMs: MINUTE },
    });
    expect(plan.nextAt).toBe(NOW + UNNEEDED_MS);
  });

  it('does not keep machines with pods of other workloads, and empty ones', () => {
    const pods = [filler('w-2'), web('b', { on: 'w-4' })];
    const input = cluster({ machines: [2, 3, 4], pods, memory: failed.memory });
    expect(drained(input)).toEqual(['w-3']);
  });

  it('is counted once, however long the pod waits', () => {
    const { memory } = decide(cluster({ ...WAITING, memory: failed.memory, now: NOW + MINUTE }));
    expect(memory.failedRemovals).toEqual(failed.memory.failedRemovals);
  });

  it('keeps them for six hours after the third one, and for the unneeded time again long after', () => {
    const fail = (memory: Partial<ScalingMemory>, now: number) =>
      decide(cluster({ ...WAITING, memory: removal(memory, now).memory, now })).memory;
    const second = fail(failed.memory, NOW + UNNEEDED_MS);
    expect(second.failedRemovals).toEqual({ web: { count: 2, until: NOW + 2 * UNNEEDED_MS } });
    const third = fail(second, NOW + 2 * UNNEEDED_MS);
    const until = NOW + 2 * UNNEEDED_MS + 6 * HOUR;
    expect(third.failedRemovals).toEqual({ web: { count: 3, until } });
    const later = until + 6 * HOUR;
    expect(fail(third, later - 1).failedRemovals).toMatchObject({ web: { count: 4 } });
    expect(fail(third, later).failedRemovals).toMatchObject({ web: { count: 1 } });
  });

  it('is one failure, although several machines were removed at a time', () => {
    const { removals = [] } = first.memory;
    const twice = { ...first.memory, removals: [...removals, ...removals] };
    const { memory } = decide(cluster({ ...WAITING, memory: twice }));
    expect(memory.failedRemovals).toMatchObject({ web: { count: 1 } });
  });
});

describe('a removal whose drain is undone', () => {
  const fillers = [filler('w-2', '2900m'), filler('w-3', '3400m')];
  const pods = [web('large', { on: 'w-1', cpu: '1' }), web('small', { on: 'w-1' })];
  const options: Options = { machines: [1, 2, 3], pods: [...pods, ...fillers] };
  const before = decide(cluster(options));
  const undone = (found: readonly Pod[]) =>
    decide(cluster({ ...options, pods: [...found, ...fillers], memory: before.memory }));
  const codesOf = ({ plan }: ReturnType<typeof decide>) => plan.refusals.map(({ code }) => code);
  const [large = web('')] = pods;
  /** In the place of the large one, whose eviction a budget refused for a while. */
  const misplaced = web('small-again', { on: 'w-2' });

  it('has failed when an evicted pod took the place of one that is left', () => {
    expect(before.plan.steps.map(({ kind }) => kind)).toEqual(['drain']);
    const after = undone([large, misplaced]);
    expect(codesOf(after)).toContain('NodePodsFitNowhere');
    expect(after.memory.failedRemovals).toMatchObject({ web: { count: 1 } });
    expect(after.memory.removals).toEqual([]);
  });

  it('has not failed when no pod was evicted', () => {
    const after = undone([...pods, aPod({ name: 'other', on: 'w-2' })]);
    expect(codesOf(after)).toContain('NodePodsFitNowhere');
    expect(after.memory.failedRemovals).toEqual({});
  });

  it('has not failed when the pods that are left fit elsewhere', () => {
    const after = undone([large, web('small-again', { on: 'w-3' })]);
    expect(after.memory.failedRemovals).toEqual({});
  });

  it('has not failed when its workload has grown', () => {
    const after = undone([large, misplaced, web('new', { on: 'w-3' })]);
    expect(codesOf(after)).toContain('NodePodsFitNowhere');
    expect(after.memory.failedRemovals).toEqual({});
  });
});

it('a removal is observed until its pods are old enough to get a machine', () => {
  const settings = { newPodDelayMs: 5 * MINUTE };
  const { memory } = decide({ ...cluster(REMOVAL), settings: { ...SETTINGS, ...settings } });
  const at = (now: number, before: ScalingMemory) => {
    const pods = [web('a-again', { createdAt: NOW + MINUTE }), ...WAITING.pods.slice(1)];
    const input = cluster({ ...WAITING, pods, memory: before, now });
    return decide({ ...input, settings: { ...SETTINGS, ...settings } });
  };
  const young = at(NOW + 3 * MINUTE, memory);
  expect(young.plan.steps).toEqual([]);
  const old = at(NOW + 6 * MINUTE, young.memory);
  expect(old.plan.steps.map(({ kind }) => kind)).toEqual(['create']);
  expect(old.memory.failedRemovals).toMatchObject({ web: { count: 1 } });
});

it('a removal that failed while the clock was ahead keeps machines for six hours at most', () => {
  const ahead = { web: { count: 1, until: NOW + 1_000 * HOUR } };
  const { memory } = decide(cluster({ ...RUNNING, memory: { failedRemovals: ahead } }));
  expect(memory.failedRemovals).toEqual({ web: { count: 1, until: NOW + 6 * HOUR } });
});

describe('a removal has not failed', () => {
  const { memory } = removal();
  const fails = (options: Options): boolean =>
    Object.keys(decide(cluster({ memory, ...options })).memory.failedRemovals ?? {}).length > 0;

  it('when its workload has grown', () => {
    expect(fails(WAITING)).toBe(true);
    expect(fails({ ...WAITING, pods: [...WAITING.pods, web('new')] })).toBe(false);
  });

  it('when another one of its workloads has grown, whose pods took the place', () => {
    const api = (name: string, on = '') => ({
      ...web(name, { on }),
      controller: { kind: 'ReplicaSet', name: 'api', uid: 'api' },
    });
    const before = decide(
      cluster({ ...REMOVAL, pods: [...REMOVAL.pods, api('c', 'w-1'), api('d', 'w-2')] }),
    );
    expect(before.plan.steps.map(({ kind }) => kind)).toEqual(['drain']);
    const pods = [...WAITING.pods, api('d', 'w-2'), api('c-again', 'w-2')];
    expect(fails({ ...WAITING, memory: before.memory, pods })).toBe(true);
    expect(fails({ ...WAITING, memory: before.memory, pods: [...pods, api('new', 'w-2')] })).toBe(
      false,
    );
  });

  it('when pods of its workload were pending before', () => {
    const options: Options = {
      machines: [1, 2],
      pods: [
        web('a', { on: 'w-1' }),
        web('b', { on: 'w-2' }),
        web('big', { spec: { nodeSelector: { none: 'x' } } }),
      ],
    };
    const before = decide(cluster(options));
    expect(before.plan.steps.map(({ kind }) => kind)).toEqual(['drain']);
    expect(before.memory.removals).toEqual([]);
  });

  it('when its pods ran again once the machine was gone, and others wait later', () => {
    const pods = [web('a-again', { on: 'w-2' }), web('b', { on: 'w-2' })];
    const over = decide(cluster({ machines: [2], pods, memory }));
    expect(over.memory.removals).toEqual([]);
    expect(fails({ ...WAITING, memory: over.memory })).toBe(false);
  });

  it('while its pods wait for the scheduler, for two minutes', () => {
    const pods = [web('a-again'), web('b', { on: 'w-2' })];
    const at = (now: number) => decide(cluster({ machines: [2], pods, memory, now })).memory;
    expect(at(NOW + 2 * MINUTE - 1).removals).toHaveLength(1);
    expect(at(NOW + 2 * MINUTE).removals).toEqual([]);
  });

  it('as long as the machine is being drained', () => {
    const now = NOW + HOUR;
    const input = cluster({ machines: [1, 2], pods: [web('b', { on: 'w-2' })], memory, now });
    const machines = input.machines.map((one) =>
      one.id === aMachineId(1) ? { ...one, isDraining: true } : one,
    );
    const { removals } = decide({ ...input, machines }).memory;
    expect(removals).toEqual([expect.objectContaining({ until: now + 2 * MINUTE })]);
  });
});
