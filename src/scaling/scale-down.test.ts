// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { DisruptionBudget } from '../model/disruption-budget.ts';
import type { Pod } from '../model/pod.ts';
import { withoutNodes } from '../scheduling/index.ts';
import { decide } from './decide.ts';
import type { DrainStep, Plan, ScalingInput } from './index.ts';
import {
  aMachineId,
  anInput,
  aPod,
  aScalingMachine,
  aScalingPool,
  aWorkerNode,
  type InputOptions,
  type MachineOptions,
  MINUTE,
  NOW,
  pods,
} from './testing/builders.ts';

function drained({ steps }: Plan): readonly string[] {
  return steps.filter((step): step is DrainStep => step.kind === 'drain').map(({ node }) => node);
}

function refusalOf({ refusals }: Plan, node: string) {
  return refusals.find(({ subject }) => subject.kind === 'node' && subject.name === node);
}

interface WorkerOptions extends InputOptions {
  readonly count?: number;
  readonly machine?: (id: number) => MachineOptions;
  /** How long all machines have been unneeded. */
  readonly unneededMs?: number;
  readonly pool?: object;
}

/** Machines with nodes `w-1`, `w-2`, …, unneeded for long enough. */
function workers({
  count = 3,
  machine,
  unneededMs,
  pool = {},
  ...over
}: WorkerOptions = {}): ScalingInput {
  const ids = Array.from({ length: count }, (_, index) => index + 1);
  const since = NOW - (unneededMs ?? 10 * MINUTE);
  return anInput({
    pools: [aScalingPool({ scaleDown: { maxConcurrent: 10 }, ...pool })],
    nodes: ids.map((id) => aWorkerNode(`w-${id}`)),
    machines: ids.map((id) =>
      aScalingMachine({ id, on: `w-${id}`, requestedAt: NOW - 60 * MINUTE + id, ...machine?.(id) }),
    ),
    memory: {
      assignments: {},
      unneededSince: Object.fromEntries(ids.map((id) => [aMachineId(id), since])),
    },
    ...over,
  });
}

function on(node: string, cpu: string, over: Parameters<typeof aPod>[0] = {}): Pod {
  return aPod({ name: `on-${node}-${cpu}`, on: node, cpu, memory: '100Mi', ...over });
}

describe('scale-down', () => {
  it('does not count a request without a place towards the minimum', () => {
    const input = workers({ count: 3, pool: { limits: { min: 3 } } });
    const refusal = { code: 'NO_HOST_FITS', message: 'host pve1: needs 8 GiB' };
    const request = aScalingMachine({ id: 9, phase: 'requested', placement: undefined, refusal });
    const { plan } = decide({ ...input, machines: [...input.machines, request] });
    expect(plan.steps.map(({ kind }) => kind)).toEqual(['cancel']);
    expect(refusalOf(plan, 'w-1')?.code).toBe('NodePoolAtMinimum');
  });

  it('removes a machine whose pods fit on other nodes, with the place of each pod', () => {
    const { plan } = decide(workers({ count: 2, pods: [on('w-1', '1'), on('w-2', '3')] }));
    expect(plan.steps).toMatchObject([
      {
        kind: 'drain',
        node: 'w-1',
        machine: aMachineId(1),
        moves: [{ pod: { name: 'on-w-1-1' }, to: 'w-2' }],
        reason:
          'node w-1 has been unneeded for 10m: cpu 25 % and memory 1.2 % requested, and its pod fits on w-2',
      },
    ]);
    expect(refusalOf(plan, 'w-2')).toMatchObject({
      code: 'NodeUtilized',
      reason: 'node w-2 is needed: cpu 75 % and memory 1.2 % requested, threshold 50 %',
    });
  });

  it('waits until the machine has been unneeded for unneededTime, then removes it', () => {
    const input = workers({ count: 1, unneededMs: 9 * MINUTE });
    const { plan, memory } = decide(input);
    expect(plan.steps).toEqual([]);
    expect(plan.nextAt).toBe(NOW + MINUTE);
    expect(refusalOf(plan, 'w-1')).toMatchObject({
      code: 'NodeUnneededTooShort',
      reason: 'node w-1 has been unneeded for 9m, of 10m',
    });
    expect(drained(decide({ ...input, memory, now: NOW + MINUTE }).plan)).toEqual(['w-1']);
  });

  it('starts the time of a machine when it becomes unneeded, and forgets it when it is needed', () => {
    const input = workers({ count: 1 });
    const first = decide({ ...input, memory: { assignments: {}, unneededSince: {} } });
    expect(first.memory.unneededSince).toEqual({ [aMachineId(1)]: NOW });
    expect(decide(workers({ count: 1, pods: [on('w-1', '3')] })).memory.unneededSince).toEqual({});
  });

  it('counts a node that is being drained for topology spread until it is deleted', () => {
    const spread = (name: string, node: string, cpu: string) =>
      on(node, cpu, {
        name,
        labels: { app: 'web' },
        spec: {
          nodeName: node,
          containers: [{ resources: { requests: { cpu, memory: '100Mi' } } }],
          topologySpreadConstraints: [
            {
              maxSkew: 1,
              topologyKey: 'topology.kubernetes.io/zone',
              whenUnsatisfiable: 'DoNotSchedule',
              labelSelector: { matchLabels: { app: 'web' } },
            },
          ],
        },
      });
    // Without zone a, web-1 fits on w-4: zone b keeps web-2, and zone c gets a second pod.
    const zones = ['a', 'b', 'b', 'c'];
    const input = workers({
      count: 4,
      nodes: zones.map((zone, index) => aWorkerNode(`w-${index + 1}`, { zone })),
      pods: [
        spread('web-1', 'w-2', '500m'),
        spread('web-2', 'w-3', '3900m'),
        spread('web-3', 'w-4', '3'),
      ],
    });
    const withDrain = (isDraining: boolean) =>
      decide({
        ...input,
        snapshot: isDraining ? input.snapshot : withoutNodes(input.snapshot, ['w-1']),
        machines: input.machines.flatMap((one, index) => {
          if (index > 0) return [one];
          return isDraining ? [{ ...one, phase: 'draining' as const, isDraining }] : [];
        }),
      }).plan;
    expect(drained(withDrain(false))).toEqual(['w-2']);
    expect(drained(withDrain(true))).toEqual([]);
    expect(refusalOf(withDrain(true), 'w-2')).toMatchObject({ code: 'NodePodsFitNowhere' });
  });

  it('keeps a machine whose pods fit nowhere else, and names one', () => {
    const { plan } = decide(workers({ count: 2, pods: [on('w-1', '1500m'), on('w-2', '3')] }));
    expect(plan.steps).toEqual([]);
    expect(refusalOf(plan, 'w-1')).toMatchObject({
      code: 'NodePodsFitNowhere',
      reason:
        'node w-1 is needed: pod default/on-w-1-1500m would fit on none of 1 other node, beside other removals and pending pods',
      facts: { pod: 'default/on-w-1-1500m', pods: 1, nodes: 1 },
    });
  });

  it('keeps the space of pending pods for them after a machine was refused', () => {
    const selecting = (name: string) => ({
      nodeSelector: { 'kubernetes.io/hostname': name },
      containers: [{ resources: { requests: { cpu: name === 'w-1' ? '100m' : '900m' } } }],
    });
    const input = workers({
      nodes: [aWorkerNode('w-1', { unschedulable: true }), aWorkerNode('w-2'), aWorkerNode('w-3')],
      pods: [
        on('w-1', '100m', { spec: { nodeName: 'w-1', ...selecting('w-1') } }),
        on('w-2', '3'),
        on('w-3', '600m'),
        aPod({ name: 'waiting', spec: selecting('w-2') }),
      ],
    });
    const { plan, memory } = decide(input);
    expect(plan.counts).toMatchObject({ fitExisting: 1, unneeded: 0 });
    expect(memory.unneededSince).toEqual({});
    expect(drained(plan)).toEqual([]);
    expect(refusalOf(plan, 'w-1')).toMatchObject({ code: 'NodePodsFitNowhere' });
    expect(refusalOf(plan, 'w-3')).toMatchObject({ code: 'NodePodsFitNowhere' });
  });

  it('removes two machines only if the pods of both fit elsewhere', () => {
    const three = [on('w-1', '1'), on('w-2', '1'), on('w-3', '2500m')];
    expect(drained(decide(workers({ pods: three })).plan)).toHaveLength(1);
    const more = [on('w-1', '500m'), on('w-2', '500m'), on('w-3', '2500m')];
    expect(drained(decide(workers({ pods: more })).plan)).toEqual(['w-2', 'w-1']);
  });

  it('never moves a pod to a node that is removed too', () => {
    const three = [on('w-1', '500m'), on('w-2', '500m'), on('w-3', '2')];
    const { steps } = decide(workers({ pods: three })).plan;
    expect(
      steps.flatMap((step) => (step.kind === 'drain' ? step.moves.map(({ to }) => to) : [])),
    ).toEqual(['w-3', 'w-3']);
  });

  it('never moves a pod to a node that is removed next, although it is the fullest that fits', () => {
    const kept = { annotations: { 'karpenter.sh/do-not-disrupt': 'true' } };
    const { steps } = decide(
      workers({
        pods: [on('w-1', '500m'), on('w-2', '1'), on('w-3', '400m')],
        machine: (id) => (id === 3 ? kept : {}),
      }),
    ).plan;
    expect(
      steps.flatMap((step) =>
        step.kind === 'drain' ? step.moves.map(({ to }) => `${step.node} ${to}`) : [],
      ),
    ).toEqual(['w-1 w-3', 'w-2 w-3']);
  });

  it('removes empty machines first, then the lowest utilization, then the fewest pods, then the youngest', () => {
    const order = (all: readonly Pod[]) =>
      drained(
        decide(
          workers({
            count: 4,
            pods: [...all, on('w-4', '3')],
            pool: { scaleDown: { maxConcurrent: 1 } },
          }),
        ).plan,
      );
    expect(order([on('w-1', '200m'), on('w-2', '100m')])).toEqual(['w-3', 'w-2']);
    expect(order([on('w-1', '100m'), on('w-2', '200m'), on('w-3', '300m')])).toEqual(['w-1']);
    const two = [on('w-1', '50m', { name: 'a' }), on('w-1', '50m', { name: 'b' })];
    expect(order([...two, on('w-2', '100m', { memory: '200Mi' }), on('w-3', '1500m')])).toEqual([
      'w-2',
    ]);
    const same = ['w-1', 'w-2', 'w-3'].map((node) => on(node, '100m'));
    expect(order(same)).toEqual(['w-3']);
  });

  it('prefers a machine that was unneeded before, so that its time is not lost', () => {
    const input = workers({
      count: 2,
      pods: [on('w-1', '1500m'), on('w-2', '1400m')],
      memory: { assignments: {}, unneededSince: { [aMachineId(1)]: NOW - 9 * MINUTE } },
    });
    expect(Object.keys(decide(input).memory.unneededSince)).toContain(aMachineId(1));
  });

  it('removes at most maxConcurrent machines with pods at a time, those being drained included', () => {
    const all = ['w-1', 'w-2', 'w-3'].map((node) => on(node, '100m'));
    const pool = { scaleDown: { maxConcurrent: 2 } };
    const four = (over: Partial<WorkerOptions>) =>
      workers({ count: 4, pods: [...all, on('w-4', '2')], pool, ...over });
    expect(drained(decide(four({})).plan)).toHaveLength(2);
    const draining = decide(four({ machine: (id) => (id === 1 ? { isDraining: true } : {}) })).plan;
    expect(drained(draining)).toHaveLength(1);
    expect(refusalOf(draining, 'w-2')?.code).toBe('NodePoolMaxConcurrent');
  });

  it('removes up to ten empty machines at a time, whatever maxConcurrent is', () => {
    const input = workers({ count: 15, pool: { scaleDown: { maxConcurrent: 1 } } });
    expect(drained(decide(input).plan)).toHaveLength(10);
  });

  it('keeps space for the pods of machines that are being drained', () => {
    const busy = (id: number) => (id === 1 ? { isDraining: true } : {});
    const input = (cpu: string) =>
      workers({
        machine: busy,
        pods: [on('w-1', cpu), on('w-2', '1'), on('w-3', '2500m')],
      });
    expect(drained(decide(input('400m')).plan)).toEqual(['w-2']);
    expect(drained(decide(input('1')).plan)).toEqual([]);
  });

  it('keeps the minimum of the pool', () => {
    const { plan } = decide(workers({ pool: { limits: { min: 2 } } }));
    expect(drained(plan)).toHaveLength(1);
    expect(plan.refusals).toContainEqual(
      expect.objectContaining({
        code: 'NodePoolAtMinimum',
        reason: expect.stringContaining('pool workers keeps at least 2 machines and has 2'),
      }),
    );
  });

  it.each([
    ['never', 'NodePoolNeverScalesDown'],
    ['empty', 'NodeNotEmpty'],
  ])('respects when: %s', (when, code) => {
    const input = workers({ count: 2, pods: [on('w-1', '100m')], pool: { scaleDown: { when } } });
    expect(refusalOf(decide(input).plan, 'w-1')?.code).toBe(code);
    expect(drained(decide(input).plan)).toEqual(when === 'empty' ? ['w-2'] : []);
  });

  it('leaves DaemonSet pods out of the utilization when configured so', () => {
    const daemon = on('w-1', '3', { controller: 'DaemonSet' });
    const input = (ignoreDaemonSets: boolean) =>
      workers({
        count: 2,
        pods: [daemon, on('w-1', '200m'), on('w-2', '3')],
        pool: { scaleDown: { ignoreDaemonSets } },
      });
    expect(drained(decide(input(false)).plan)).toEqual([]);
    expect(drained(decide(input(true)).plan)).toEqual(['w-1']);
  });

  it('removes an empty machine with DaemonSet pods, however much they request', () => {
    const daemon = on('w-1', '3', { controller: 'DaemonSet' });
    expect(drained(decide(workers({ count: 1, pods: [daemon] })).plan)).toEqual(['w-1']);
  });

  it('removes an empty machine with DaemonSet pods before one that is used less', () => {
    const pods = [on('w-1', '1', { controller: 'DaemonSet' }), on('w-2', '100m'), on('w-3', '3')];
    expect(drained(decide(workers({ pods })).plan)).toEqual(['w-1', 'w-2']);
  });

  it('judges machines with GPUs by their GPUs', () => {
    const gpu = { type: 'a2', count: 2, resource: 'nvidia.com/gpu' };
    const node = (name: string) => aWorkerNode(name, { allocatable: { 'nvidia.com/gpu': '2' } });
    const pod = (count: string) =>
      aPod({
        on: 'w-1',
        spec: {
          containers: [{ resources: { requests: { cpu: '100m', 'nvidia.com/gpu': count } } }],
        },
      });
    const input = (count: string) =>
      workers({
        count: 2,
        nodes: [node('w-1'), node('w-2')],
        pods: [pod(count)],
        pool: { gpu, limits: { min: 1 } },
      });
    expect(drained(decide(input('1')).plan)).toEqual(['w-2']);
    expect(refusalOf(decide(input('1')).plan, 'w-1')?.code).toBe('NodeUtilized');
  });

  it.each([
    ['lastAddAt', 'delayAfterAdd', 'a scale-up'],
    ['lastDeleteAt', 'delayAfterDelete', 'a scale-down'],
    ['lastFailureAt', 'delayAfterFailure', 'a failed scale-down'],
  ])('waits after %s', (field, key, what) => {
    const plan = (ago: number) => {
      const pool = aScalingPool({ scaleDown: { [key]: '7m' } }, { [field]: NOW - ago });
      return decide({ ...workers({ count: 1 }), pools: [pool] }).plan;
    };
    expect(drained(plan(7 * MINUTE))).toEqual(['w-1']);
    expect(plan(5 * MINUTE)).toMatchObject({ steps: [], nextAt: NOW + 2 * MINUTE });
    expect(refusalOf(plan(5 * MINUTE), 'w-1')).toMatchObject({
      code: 'NodePoolDelay',
      reason: `node w-1 is kept for 2m: pool workers waits 7m after ${what}`,
    });
  });

  it('removes nothing while too many nodes are not Ready', () => {
    const unready = (count: number) => Array.from({ length: count }, (_, index) => `x-${index}`);
    const plan = (count: number) => {
      const nodes = [aWorkerNode('w-1'), ...unready(count).map((name) => aWorkerNode(name))];
      return decide(workers({ count: 1, nodes, unreadyNodes: unready(count) })).plan;
    };
    expect(drained(plan(3))).toEqual(['w-1']);
    expect(drained(plan(4))).toEqual([]);
    expect(plan(4).refusals).toContainEqual(
      expect.objectContaining({
        code: 'TooManyUnready',
        reason: 'no machine is removed while 4 of 5 nodes are not Ready: more than 3 and 45 %',
      }),
    );
  });

  it('keeps machines that are not Ready, and moves no pods to them', () => {
    const input = workers({
      count: 2,
      machine: (id) => (id === 2 ? { isNodeReady: false } : {}),
      unreadyNodes: ['w-2'],
      pods: [on('w-1', '100m')],
    });
    const { plan } = decide(input);
    expect(drained(plan)).toEqual([]);
    expect(refusalOf(plan, 'w-2')?.code).toBe('NodeUnready');
    expect(refusalOf(plan, 'w-1')?.code).toBe('NodePodsFitNowhere');
  });

  it('moves no pods to machines that are being provisioned', () => {
    const input = workers({
      count: 2,
      machine: (id) => (id === 2 ? { phase: 'booting', on: undefined as never } : {}),
      nodes: [aWorkerNode('w-1')],
      pods: [on('w-1', '100m')],
    });
    expect(drained(decide(input).plan)).toEqual([]);
  });

  it.each([
    ['cluster-autoscaler.kubernetes.io/scale-down-disabled', 'NodeScaleDownDisabled'],
    ['karpenter.sh/do-not-disrupt', 'NodeDoNotDisrupt'],
  ])('keeps a node with annotation %s', (annotation, code) => {
    const input = (value: string) =>
      workers({ count: 1, machine: () => ({ annotations: { [annotation]: value } }) });
    expect(refusalOf(decide(input('true')).plan, 'w-1')?.code).toBe(code);
    expect(drained(decide(input('false')).plan)).toEqual(['w-1']);
  });

  it('removes only nodes of its own machines', () => {
    const nodes = [aWorkerNode('w-1'), aWorkerNode('theirs')];
    expect(drained(decide(workers({ count: 1, nodes })).plan)).toEqual(['w-1']);
    expect(drained(decide(workers({ count: 0, nodes })).plan)).toEqual([]);
  });

  it('keeps all machines while others must be added', () => {
    const input = workers({ count: 1, pods: [aPod({ spec: { nodeSelector: { zone: 'x' } } })] });
    const pools = [...input.pools, aScalingPool({ name: 'zoned', labels: { zone: 'x' } })];
    const hosts = input.hosts.map((host) => ({
      ...host,
      pools: { ...host.pools, zoned: host.pools['workers'] as never },
    }));
    const { plan } = decide({ ...input, pools, hosts });
    expect(plan.steps).toMatchObject([{ kind: 'create', pool: 'zoned' }]);
    expect(refusalOf(plan, 'w-1')?.code).toBe('NodeRemovalWaits');
  });

  it('keeps the space that pending pods will use', () => {
    const running = [on('w-1', '1'), on('w-2', '2500m')];
    expect(drained(decide(workers({ count: 2, pods: running })).plan)).toEqual(['w-1']);
    const waiting = aPod({ name: 'waiting', cpu: '3', memory: '100Mi' });
    expect(drained(decide(workers({ count: 2, pods: [...running, waiting] })).plan)).toEqual([]);
  });

  it('keeps a machine while the pods that it was created for are on their way', () => {
    const waiting = aPod({ name: 'waiting', cpu: '500m' });
    const input = workers({ count: 2, pods: [waiting] });
    const memory = { ...input.memory, assignments: { [aMachineId(1)]: [waiting.uid] } };
    const { plan } = decide({ ...input, memory });
    expect(drained(plan)).toEqual(['w-2']);
    expect(refusalOf(plan, 'w-1')).toMatchObject({
      code: 'NodeNeededByPending',
      reason: 'node w-1 was created for 1 pod that will be scheduled, such as default/waiting',
    });
  });

  it('keeps headroom', () => {
    const input = workers({ pool: { headroom: { machines: 2 } } });
    const { plan } = decide(input);
    expect(drained(plan)).toHaveLength(1);
    expect(plan.refusals.map(({ code }) => code)).toContain('NodeKeptAsHeadroom');
  });

  it('moves no pods of low priority, and removes the machine', () => {
    const low = on('w-1', '1', { priority: -11 });
    const [step] = decide(workers({ count: 2, pods: [low, on('w-2', '3500m')] })).plan.steps;
    expect(step).toMatchObject({ node: 'w-1', moves: [] });
  });

  it('may remove the last machine with pods when they fit elsewhere', () => {
    const input = workers({
      count: 1,
      nodes: [aWorkerNode('w-1'), aWorkerNode('control-plane')],
      pods: [on('w-1', '100m')],
    });
    expect(drained(decide(input).plan)).toEqual(['w-1']);
  });
});

/** The table in docs/guides/scale-down.md, a test per row. */
describe('eviction rules', () => {
  const budget = (disruptionsAllowed: number, name = 'web'): DisruptionBudget => ({
    name,
    namespace: 'default',
    selector: { selects: 'matching', requirements: [] },
    disruptionsAllowed,
  });
  const plan = (pod: Pod, over: WorkerOptions = {}) =>
    decide(workers({ count: 2, pods: [pod, on('w-2', '3')], ...over })).plan;
  const small = (over: Parameters<typeof aPod>[0] = {}): Pod =>
    on('w-1', '100m', { name: 'small', ...over });
  const bare = (): Pod => {
    const { controller: _, ...pod } = small();
    return pod;
  };
  const blockOf = (all: Plan): unknown => refusalOf(all, 'w-1')?.facts['block'];

  it.each(['ReplicaSet', 'ReplicationController', 'StatefulSet', 'Job'])(
    'a pod of a %s is moved',
    (controller) => {
      expect(drained(plan(small({ controller })))).toEqual(['w-1']);
    },
  );

  it('a pod without a controller blocks', () => {
    expect(blockOf(plan(bare()))).toBe('NotReplicated');
  });

  it('a pod of another controller blocks, unless skipCustomControllers is false', () => {
    const pod = small({ controller: 'GameServer' });
    expect(blockOf(plan(pod))).toBe('NotReplicated');
    const pool = { scaleDown: { skipCustomControllers: false } };
    expect(drained(plan(pod, { pool }))).toEqual(['w-1']);
  });

  it('DaemonSet pods, mirror pods and terminating pods do not block and are not moved', () => {
    const left = [
      small({ name: 'd', controller: 'DaemonSet' }),
      { ...bare(), name: 'm', isMirror: true },
      { ...bare(), name: 't', isTerminating: true },
    ];
    const { steps } = decide(workers({ count: 1, pods: left })).plan;
    expect(steps).toMatchObject([{ node: 'w-1', moves: [] }]);
  });

  it('a pod in kube-system without a PodDisruptionBudget blocks, unless skipSystemPods is false', () => {
    const pod = small({ namespace: 'kube-system' });
    expect(blockOf(plan(pod))).toBe('KubeSystem');
    const disruptionBudgets = [{ ...budget(1), namespace: 'kube-system' }];
    expect(drained(plan(pod, { disruptionBudgets }))).toEqual(['w-1']);
    expect(drained(plan(pod, { pool: { scaleDown: { skipSystemPods: false } } }))).toEqual(['w-1']);
  });

  it('a pod with local storage blocks, unless skipLocalStorage is false', () => {
    const pod = small({ eviction: { localVolumes: ['scratch'] } });
    expect(blockOf(plan(pod))).toBe('LocalStorage');
    expect(drained(plan(pod, { pool: { scaleDown: { skipLocalStorage: false } } }))).toEqual([
      'w-1',
    ]);
  });

  it('safe-to-evict: "false" blocks', () => {
    expect(blockOf(plan(small({ eviction: { safeToEvict: false } })))).toBe('NotSafeToEvict');
  });

  it('safe-to-evict: "true" overrides controller, kube-system and local storage, not a PodDisruptionBudget', () => {
    const pod: Pod = { ...bare(), eviction: { safeToEvict: true, localVolumes: ['scratch'] } };
    expect(drained(plan(pod))).toEqual(['w-1']);
    expect(drained(plan({ ...pod, namespace: 'kube-system' }))).toEqual(['w-1']);
    expect(blockOf(plan(pod, { disruptionBudgets: [budget(0)] }))).toBe('DisruptionBudget');
  });

  it('karpenter.sh/do-not-disrupt blocks, also with safe-to-evict: "true"', () => {
    const pod = small({ eviction: { doNotDisrupt: true, safeToEvict: true } });
    expect(blockOf(plan(pod))).toBe('DoNotDisrupt');
  });

  it('a pod that tolerates every taint blocks, since it might come back', () => {
    const tolerations = [{ operator: 'Exists' as const }];
    const pod = small({ spec: { tolerations } });
    expect(blockOf(plan(pod))).toBe('ToleratesDrain');
    expect(blockOf(plan({ ...pod, eviction: { safeToEvict: true } }))).toBe('ToleratesDrain');
    const one = small({ spec: { tolerations: [{ key: 'dedicated', operator: 'Exists' }] } });
    expect(drained(plan(one))).toEqual(['w-1']);
  });

  it('a PodDisruptionBudget without disruptions left blocks', () => {
    const blocked = plan(small(), { disruptionBudgets: [budget(0)] });
    expect(blockOf(blocked)).toBe('DisruptionBudget');
    expect(refusalOf(blocked, 'w-1')?.reason).toBe(
      'node w-1 is kept: PodDisruptionBudget default/web allows 0 more disruptions of pod default/small',
    );
    expect(drained(plan(small(), { disruptionBudgets: [budget(1)] }))).toEqual(['w-1']);
  });

  it('a pod with two PodDisruptionBudgets blocks, since the API evicts none such', () => {
    const disruptionBudgets = [budget(1), budget(1, 'other')];
    expect(blockOf(plan(small(), { disruptionBudgets }))).toBe('DisruptionBudget');
  });

  it('a pod of low priority does not block', () => {
    expect(drained(plan({ ...bare(), priority: -11 }))).toEqual(['w-1']);
    expect(blockOf(plan({ ...bare(), priority: -10 }))).toBe('NotReplicated');
  });

  it('the reason of a removal counts only pods that need another place', () => {
    const [step] = plan(small({ priority: -11 })).steps;
    expect(step?.reason).toContain('2.5 % and memory 1.2 % requested, and none of its pods needs');
  });

  it('disruptions are counted over all removals of a plan, and over those in progress', () => {
    const all = ['w-1', 'w-2', 'w-3'].map((node) => on(node, '100m'));
    const four = (allowed: number, over: WorkerOptions = {}) =>
      decide(
        workers({
          count: 4,
          pods: [...all, on('w-4', '3', { namespace: 'other' })],
          disruptionBudgets: [budget(allowed)],
          ...over,
        }),
      ).plan;
    expect(drained(four(2))).toHaveLength(2);
    expect(drained(four(3))).toHaveLength(3);
    const machine = (id: number) => (id === 1 ? { isDraining: true } : {});
    expect(drained(four(2, { machine }))).toHaveLength(1);
  });
});

it('a thousand unchanged pods give the same plan in any order', () => {
  const all = pods(200, { on: 'w-1', cpu: '10m', memory: '10Mi' });
  const input = workers({ count: 5, pods: all });
  const shuffled = { ...input, machines: input.machines.toReversed() };
  expect(decide(shuffled).plan.steps).toEqual(decide(input).plan.steps);
});
