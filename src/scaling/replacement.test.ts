// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Pod } from '../model/pod.ts';
import { decide } from './decide.ts';
import { type Decision, rememberRequested, type ScalingInput } from './index.ts';
import {
  aHost,
  aMachineId,
  anInput,
  aPod,
  aScalingMachine,
  aScalingPool,
  aWorkerNode,
  GIB,
  type InputOptions,
  type MachineOptions,
  MINUTE,
  NOW,
} from './testing/builders.ts';

const HOUR = 60 * MINUTE;
const SMALL = { cpu: 2, memoryBytes: 2 * GIB, diskBytes: 20 * GIB };
const SCALE_DOWN = { utilizationThreshold: 0.9, unneededTime: '2m', maxConcurrent: 3 };
const POOLS = twoPools();
const IDS = [1, 2, 3, 4, 5, 6];
const TWO_LARGE = ['large', 'large'];

/** Pods prefer the large one. */
function twoPools(small: object = {}, large: object = {}) {
  const common = { scaleDown: SCALE_DOWN };
  const size = { cpu: 2, memory: '2Gi', disk: '20Gi' };
  const largeSize = { cpu: 4, memory: '8Gi', disk: '20Gi' };
  return [
    aScalingPool({ name: 'small', size, ...common, ...small }),
    aScalingPool({ name: 'large', size: largeSize, priority: 1, ...common, ...large }),
  ];
}

/** Six small nodes with a pod each, of which three fit on one large node. */
function sixSmallNodes(over: InputOptions = {}): ScalingInput {
  return anInput({
    pools: POOLS,
    nodes: IDS.map((id) =>
      aWorkerNode(`s-${id}`, { allocatable: { cpu: '2', memory: '1800Mi', pods: '110' } }),
    ),
    machines: IDS.map((id) => aScalingMachine({ id, pool: 'small', size: SMALL, on: `s-${id}` })),
    pods: IDS.map((id) =>
      aPod({ name: `web-${id}`, on: `s-${id}`, cpu: '1200m', memory: '1200Mi' }),
    ),
    ...over,
  });
}

function twoOf({ snapshot, machines }: ScalingInput) {
  const nodes = snapshot.nodes.slice(0, 2);
  const pods = nodes.flatMap(({ name }) => snapshot.podsOn(name));
  return { nodes, pods, machines: machines.slice(0, 2) };
}

/** A pending pod that fits on no node of the inputs here. */
function onlyOn(pool: string, resources: { readonly cpu: string; readonly memory?: string }): Pod {
  const requests = { memory: '16Mi', ...resources };
  return aPod({
    name: 'new',
    spec: {
      containers: [{ resources: { requests } }],
      nodeSelector: { 'autoscaler.proxmox/group': pool },
    },
  });
}

function created({ plan }: Decision): readonly string[] {
  return plan.steps.flatMap((step) =>
    step.kind === 'create' ? step.machines.map(() => step.pool) : [],
  );
}

/** As the autoscaler does when it has carried out the plan: new machines 11, 12, … with a ready node. */
function carryOut(
  input: ScalingInput,
  { plan, memory }: Decision,
  { now, ...over }: { readonly now: number } & Pick<InputOptions, 'pods'>,
): ScalingInput {
  const [step] = plan.steps;
  if (step?.kind !== 'create' || step.replaces === undefined) throw new Error('no replacement');
  const added = step.machines.map((_, index) => 11 + index);
  const size = { cpu: 4, memoryBytes: 8 * GIB, diskBytes: 20 * GIB };
  return sixSmallNodes({
    ...over,
    now,
    memory: rememberRequested(
      memory,
      added.map((id) => ({ id: aMachineId(id), pods: [] })),
      { replaces: step.replaces, at: input.now },
    ),
    nodes: [
      ...input.snapshot.nodes,
      ...added.map((id) =>
        aWorkerNode(`l-${id}`, { allocatable: { cpu: '4', memory: '7800Mi', pods: '110' } }),
      ),
    ],
    machines: [
      ...input.machines,
      ...added.map((id) => aScalingMachine({ id, pool: 'large', size, on: `l-${id}` })),
    ],
  });
}

describe('machines that cannot be removed one by one', () => {
  it('are all replaced if no smaller number of them is worth a new machine', () => {
    const seven = [...IDS, 7];
    const large = {
      size: { cpu: 12, memory: '12Gi', disk: '20Gi' },
      limits: { max: 1 },
      // More than 1.2 times the price of six small machines, and less than that of seven.
      pricePerHour: 0.19,
    };
    const decision = decide(
      sixSmallNodes({
        pools: twoPools({}, large),
        nodes: seven.map((id) =>
          aWorkerNode(`s-${id}`, { allocatable: { cpu: '2', memory: '1800Mi', pods: '110' } }),
        ),
        machines: seven.map((id) =>
          aScalingMachine({ id, pool: 'small', size: SMALL, on: `s-${id}` }),
        ),
        pods: seven.map((id) =>
          aPod({ name: `web-${id}`, on: `s-${id}`, cpu: '1200m', memory: '1200Mi' }),
        ),
      }),
    );
    expect(created(decision)).toEqual(['large']);
    expect(decision.plan.steps).toMatchObject([{ replaces: { length: 7 } }]);
  });

  it('are replaced all at once rather than a few at a time, with the reason', () => {
    const { plan } = decide(sixSmallNodes());
    expect(plan.steps).toMatchObject([
      {
        kind: 'create',
        pool: 'large',
        machines: [{ pods: [] }, { pods: [] }],
        replaces: IDS.map(aMachineId),
        reason:
          '2 machines of pool large (4 vCPUs, 8 GiB) instead of 6 that cannot be emptied one by one: nodes s-1, s-2, s-3, s-4, s-5, s-6',
        facts: { machines: 2, replaced: 6 },
      },
    ]);
  });

  it.each<[string, { pods?: readonly Pod[]; machines?: readonly MachineOptions[] }]>([
    ['a pod is pending', { pods: [aPod({ name: 'new', cpu: '100m' })] }],
    ['a machine is being provisioned', { machines: [{ id: 9, phase: 'booting' as const }] }],
    ['a machine is being drained', { machines: [{ id: 9, on: 's-9', isDraining: true }] }],
  ])('are not replaced while %s', (_, { pods = [], machines = [] }) => {
    const input = sixSmallNodes();
    const all = IDS.flatMap((id) => input.snapshot.podsOn(`s-${id}`));
    const decision = decide(
      sixSmallNodes({
        pods: [...all, ...pods],
        machines: [
          ...input.machines,
          ...machines.map((one) => aScalingMachine({ ...one, pool: 'large' })),
        ],
        nodes: [...input.snapshot.nodes, ...machines.map(() => aWorkerNode('s-9'))],
      }),
    );
    expect(decision.plan.steps.filter((step) => 'replaces' in step)).toEqual([]);
  });

  it('are not replaced before their pods have run for the unneeded time', () => {
    const pods = IDS.map((id) =>
      aPod({
        name: `web-${id}`,
        on: `s-${id}`,
        cpu: '1200m',
        memory: '1200Mi',
        createdAt: NOW - MINUTE,
      }),
    );
    expect(created(decide(sixSmallNodes({ pods })))).toEqual([]);
    expect(created(decide(sixSmallNodes({ pods, now: NOW + MINUTE })))).toEqual(TWO_LARGE);
  });

  it.each([
    ['a higher price', { pricePerHour: 10 }, {}],
    ['the minimum of their pool', {}, { limits: { min: 6, max: 10 } }],
    ['a higher utilization than the threshold', {}, { scaleDown: { utilizationThreshold: 0.5 } }],
    ['scaleDown.when', {}, { scaleDown: { ...SCALE_DOWN, when: 'empty' } }],
  ])('are not replaced against %s', (_, large, small) => {
    expect(created(decide(sixSmallNodes({ pools: twoPools(small, large) })))).toEqual([]);
  });

  it('are not replaced for a single machine less', () => {
    expect(created(decide(sixSmallNodes(twoOf(sixSmallNodes()))))).toEqual([]);
  });

  it('are replaced although their pools add only one machine at a time', () => {
    const slow = { scaleUp: { batchSize: 1 } };
    expect(created(decide(sixSmallNodes({ pools: twoPools(slow, slow) })))).toEqual(['large']);
  });

  it('are replaced although the host is too full for new machines instead of all of them', () => {
    const hosts = [aHost('pve1', ['small', 'large'], { cpus: 4 })];
    expect(created(decide(sixSmallNodes({ hosts })))).toEqual(['large']);
  });

  it('are replaced, also for a single machine less, when pods wait for the limit of their pool', () => {
    const { nodes, pods, machines } = twoOf(sixSmallNodes());
    const full = { nodes, machines, pools: twoPools({ limits: { max: 2 } }) };
    const waiting = onlyOn('small', { cpu: '1200m', memory: '1200Mi' });
    expect(created(decide(sixSmallNodes({ ...full, pods })))).toEqual([]);
    expect(created(decide(sixSmallNodes({ ...full, pods: [...pods, waiting] })))).toEqual([
      'large',
    ]);
  });

  it('are not replaced while a pod waits for a pool that is paused', () => {
    const input = sixSmallNodes();
    const all = IDS.flatMap((id) => input.snapshot.podsOn(`s-${id}`));
    const pools = [
      ...POOLS,
      aScalingPool(
        { name: 'other', size: { cpu: 2, memory: '4Gi', disk: '20Gi' } },
        { pause: { until: NOW + MINUTE, message: 'three failed' } },
      ),
    ];
    const waiting = onlyOn('other', { cpu: '100m' });
    expect(created(decide(sixSmallNodes({ pools, pods: all })))).toEqual(TWO_LARGE);
    expect(created(decide(sixSmallNodes({ pools, pods: [...all, waiting] })))).toEqual([]);
  });

  it('are not replaced while a pod is about to be scheduled and headroom finds no place', () => {
    const input = sixSmallNodes();
    const all = IDS.flatMap((id) => input.snapshot.podsOn(`s-${id}`));
    const pools = twoPools({ limits: { max: 6 }, headroom: { machines: 2 } });
    const waiting = aPod({ name: 'new', cpu: '100m', memory: '16Mi' });
    expect(created(decide(sixSmallNodes({ pools, pods: all })))).toEqual(TWO_LARGE);
    expect(created(decide(sixSmallNodes({ pools, pods: [...all, waiting] })))).toEqual([]);
  });

  it('are not replaced while there is headroom, which evicted pods might take', () => {
    const withHeadroom = (memory: string) => {
      const labels = { 'autoscaler.proxmox/group': 'small' };
      const nodes = sixSmallNodes().snapshot.nodes.map((node) => ({ ...node, labels }));
      return sixSmallNodes({
        nodes,
        pools: twoPools({ limits: { max: 6 }, headroom: { memory } }),
      });
    };
    expect(created(decide(withHeadroom('512Mi')))).toEqual([]);
    // It fits on no node.
    expect(created(decide(withHeadroom('1Gi')))).toEqual(TWO_LARGE);
  });

  it('are replaced beside a machine that is kept because its pods found no other node before', () => {
    const nodes = [...IDS, 7].map((id) =>
      aWorkerNode(`s-${id}`, { allocatable: { cpu: '2', memory: '1800Mi', pods: '110' } }),
    );
    const input = sixSmallNodes();
    const kept = aPod({ name: 'kept', on: 's-7', cpu: '100m', memory: '1200Mi' });
    const pods = IDS.flatMap((id) => input.snapshot.podsOn(`s-${id}`));
    const controller = { kind: 'ReplicaSet', name: 'kept', uid: 'kept' };
    const { plan } = decide(
      sixSmallNodes({
        nodes,
        machines: [
          ...input.machines,
          aScalingMachine({ id: 7, pool: 'small', size: SMALL, on: 's-7' }),
        ],
        pods: [...pods, { ...kept, controller }],
        memory: { ...input.memory, failedRemovals: { kept: { count: 3, until: NOW + HOUR } } },
      }),
    );
    expect(plan.refusals).toContainEqual(
      expect.objectContaining({
        code: 'NodePodsWaitedBefore',
        subject: { kind: 'node', name: 's-7' },
      }),
    );
    expect(plan.steps).toMatchObject([{ replaces: IDS.map(aMachineId) }]);
    expect(plan.nextAt).toBe(NOW + HOUR);
  });

  it('are replaced beside a machine whose pod no pool has a machine for', () => {
    const input = sixSmallNodes();
    const special = aWorkerNode('s-7', { labels: { special: 'yes' } });
    const spec = {
      containers: [{ resources: { requests: { cpu: '3', memory: '1Gi' } } }],
      nodeSelector: { special: 'yes' },
    };
    const { plan } = decide(
      sixSmallNodes({
        nodes: [...input.snapshot.nodes, special],
        machines: [
          ...input.machines,
          aScalingMachine({ id: 7, pool: 'small', size: SMALL, on: 's-7' }),
        ],
        pods: [
          ...IDS.flatMap((id) => input.snapshot.podsOn(`s-${id}`)),
          aPod({ name: 'special', on: 's-7', spec }),
        ],
      }),
    );
    expect(plan.steps).toMatchObject([{ replaces: { length: 6 } }]);
  });

  it('are searched once in the unneeded time, not with every decision', () => {
    const pools = [aScalingPool({ name: 'small', size: { cpu: 2, memory: '2Gi', disk: '20Gi' } })];
    const { memory } = decide(sixSmallNodes({ pools }));
    expect(memory.replacementAt).toBe(NOW + 10 * MINUTE);
    const next = decide(sixSmallNodes({ pools, memory, now: NOW + MINUTE }));
    expect(next.memory.replacementAt).toBe(NOW + 10 * MINUTE);
  });
});

describe('a replacement in progress', () => {
  const input = sixSmallNodes();
  const first = decide(input);

  it('removes the replaced machines without delay, and keeps the new ones, which are empty', () => {
    const { plan } = decide(carryOut(input, first, { now: NOW + 20 * MINUTE }));
    expect(plan.steps.map((step) => 'node' in step && step.node)).toEqual(['s-1', 's-2', 's-3']);
    expect(plan.steps[0]?.reason).toBe(
      'node s-1 is replaced by new machines: cpu 60 % and memory 66.7 % requested, and its pod fits on l-12',
    );
    expect(plan.refusals).toContainEqual(
      expect.objectContaining({
        subject: { kind: 'node', name: 'l-11' },
        code: 'NodeReplacesOthers',
        reason: 'node l-11 was created to replace 6 machines that are not removed yet',
      }),
    );
  });

  it('drains the machines in the order that was simulated', () => {
    const after = carryOut(input, first, { now: NOW + 20 * MINUTE });
    const replacement = after.memory.replacement!;
    const reversed = { ...replacement, replaced: replacement.replaced.toReversed() };
    const { plan } = decide({ ...after, memory: { ...after.memory, replacement: reversed } });
    expect(plan.steps.map((step) => 'node' in step && step.node)).toEqual(['s-6', 's-5', 's-4']);
  });

  it.each<[string, (after: ScalingInput) => ScalingInput]>([
    [
      'the other new machines',
      (after) => ({
        ...after,
        machines: after.machines.map((one) =>
          one.id === aMachineId(11) ? { ...one, phase: 'booting' as const } : one,
        ),
      }),
    ],
    [
      'the removals before it',
      (after) => ({
        ...after,
        machines: after.machines.map((one) =>
          one.id === aMachineId(1) ? { ...one, isDraining: true } : one,
        ),
      }),
    ],
    [
      'pods that are being scheduled',
      (after) => ({ ...after, pending: [aPod({ name: 'new', cpu: '100m', memory: '16Mi' })] }),
    ],
  ])('waits for %s', (what, change) => {
    const { plan } = decide(change(carryOut(input, first, { now: NOW + 20 * MINUTE })));
    expect(plan.steps).toEqual([]);
    expect(plan.refusals).toContainEqual(
      expect.objectContaining({
        subject: { kind: 'node', name: 's-2' },
        code: 'NodeRemovalWaits',
        reason: `node s-2 is replaced by new machines, and waits for ${what}`,
      }),
    );
  });

  it('is over when the last of them is gone', () => {
    const after = carryOut(input, first, { now: NOW + 20 * MINUTE });
    const left = new Set<string>(IDS.map(aMachineId));
    const { memory } = decide({
      ...after,
      machines: after.machines.filter(({ id }) => !left.has(id)),
    });
    expect(memory.replacement).toBeUndefined();
  });

  it('fails when a new machine is lost: the next one is planned hours later', () => {
    const after = carryOut(input, first, { now: NOW + 20 * MINUTE });
    const machines = after.machines.filter(({ id }) => id !== aMachineId(11));
    const lost = decide({ ...after, machines });
    expect(created(lost)).toEqual([]);
    const later = (ms: number) =>
      decide(sixSmallNodes({ memory: lost.memory, now: after.now + ms }));
    expect(created(later(5 * HOUR))).toEqual([]);
    expect(created(later(6 * HOUR))).toEqual(TWO_LARGE);
  });

  it('goes on as long as a machine can be removed', () => {
    const { plan, memory } = decide(carryOut(input, first, { now: NOW + 2 * HOUR }));
    expect(plan.steps).toHaveLength(3);
    expect(memory.replacement).toBeDefined();
  });

  /** Pods that may not be evicted. */
  const blocked = IDS.map((id) =>
    aPod({
      name: `web-${id}`,
      on: `s-${id}`,
      cpu: '1200m',
      memory: '1200Mi',
      eviction: { doNotDisrupt: true },
    }),
  );
  const delayMs = 2 * MINUTE + POOLS[0]!.config.scaleDown.delayAfterAddMs;

  it('fails when no machine can be removed for the unneeded time after the delay; then the new one may go', () => {
    expect(delayMs).toBeGreaterThan(2 * MINUTE);
    const at = (now: number) => carryOut(input, first, { now, pods: blocked });
    expect(decide(at(NOW + delayMs - 1)).memory.replacement).toBeDefined();
    const failing = decide(at(NOW + delayMs));
    expect(failing.memory).toMatchObject({ replacement: undefined, replacementFailures: 1 });
    const next = decide({ ...at(NOW + delayMs + 1), memory: failing.memory });
    expect(next.plan.refusals.map(({ code }) => code)).not.toContain('NodeReplacesOthers');
  });

  it.each([
    ['has not failed if fewer machines are left than before', 3, 0],
    ['has failed if as many machines are left as before', 2, 2],
  ])('%s', (_, removed, failures) => {
    const after = carryOut(input, first, { now: NOW + delayMs, pods: blocked });
    const gone = new Set<string>(IDS.slice(0, removed).map(aMachineId));
    const at = (now: number, memory: ScalingInput['memory']) =>
      decide({ ...after, now, memory, machines: after.machines.filter(({ id }) => !gone.has(id)) });
    const followed = at(NOW + delayMs, { ...after.memory, replacementFailures: 1 }).memory;
    expect(followed.replacement).toBeDefined();
    const { memory } = at(NOW + 2 * delayMs, followed);
    expect(memory).toMatchObject({ replacement: undefined, replacementFailures: failures });
  });

  it('has not failed when there are more pods than before, which have taken the place', () => {
    const web = aPod({ name: 'web-7', on: 'l-11', cpu: '3', memory: '16Mi' });
    const pods = [...blocked, web];
    const { memory } = decide(carryOut(input, first, { now: NOW + delayMs, pods }));
    expect(memory.replacement).toBeUndefined();
    expect(memory.replacementFailures ?? 0).toBe(0);
  });

  it('fails although it began while the clock was ahead', () => {
    const now = NOW + 20 * MINUTE;
    const { memory, ...rest } = carryOut(input, first, { now, pods: blocked });
    const ahead = { ...memory.replacement!, at: now + 1_000 * HOUR };
    const followed = decide({ ...rest, memory: { ...memory, replacement: ahead } }).memory;
    expect(followed.replacement).toMatchObject({ at: now });
    const later = decide({ ...rest, now: now + delayMs, memory: followed });
    expect(later.memory.replacement).toBeUndefined();
  });

  it('may be followed by another one after a failure, and after the third hours later', () => {
    const after = (replacementFailures: number) => {
      const now = NOW + delayMs;
      const { memory, ...rest } = carryOut(input, first, { now, pods: blocked });
      const failed = decide({ ...rest, memory: { ...memory, replacementFailures } }).memory;
      return (ms: number) => created(decide(sixSmallNodes({ memory: failed, now: now + ms })));
    };
    expect(after(0)(MINUTE)).toEqual(TWO_LARGE);
    expect(after(1)(MINUTE)).toEqual(TWO_LARGE);
    expect(after(2)(5 * HOUR)).toEqual([]);
    expect(after(2)(6 * HOUR)).toEqual(TWO_LARGE);
  });

  it('sets the count of failures back when it succeeds', () => {
    const after = carryOut(input, first, { now: NOW + 20 * MINUTE });
    const left = new Set<string>(IDS.map(aMachineId));
    const machines = after.machines.filter(({ id }) => !left.has(id));
    const memory = { ...after.memory, replacementFailures: 2 };
    expect(decide({ ...after, memory, machines }).memory.replacementFailures).toBe(0);
  });

  it('does not fail while a new machine is being provisioned', () => {
    const after = carryOut(input, first, { now: NOW + 2 * HOUR, pods: blocked });
    const machines = after.machines.map((one) =>
      one.id === aMachineId(11)
        ? { ...one, phase: 'booting' as const, readySince: undefined, node: undefined }
        : one,
    );
    expect(decide(after).memory.replacement).toBeUndefined();
    expect(decide({ ...after, machines }).memory.replacement).toBeDefined();
  });

  it('goes on while one of its machines is being drained', () => {
    const after = carryOut(input, first, { now: NOW + 2 * HOUR, pods: blocked });
    const machines = after.machines.map((one) =>
      one.id === aMachineId(1) ? { ...one, isDraining: true } : one,
    );
    expect(decide(after).memory.replacement).toBeUndefined();
    expect(decide({ ...after, machines }).memory.replacement).toBeDefined();
  });
});
