// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { decide } from './decide.ts';
import type { CreateStep, Plan, ScalingInput } from './index.ts';
import {
  aHost,
  anInput,
  aPod,
  aScalingMachine,
  aScalingPool,
  aWorkerNode,
  GIB,
  type MachineOptions,
  MINUTE,
  NOW,
  pods,
} from './testing/builders.ts';

function created({ steps }: Plan): readonly CreateStep[] {
  return steps.filter((step) => step.kind === 'create');
}

/** `pool: machines` of all create steps. */
function counts(input: ScalingInput): Readonly<Record<string, number>> {
  const result: Record<string, number> = {};
  for (const { pool, machines } of created(decide(input).plan))
    result[pool] = (result[pool] ?? 0) + machines.length;
  return result;
}

function codes({ refusals }: Plan): readonly string[] {
  return [...new Set(refusals.map(({ code }) => code))].toSorted();
}

describe('scale-up', () => {
  it('requests machines for pods that fit on no node, with the pods of each machine', () => {
    const input = anInput({ pods: pods(6, { cpu: '1500m', memory: '1Gi' }) });
    const { plan } = decide(input);
    const [step] = created(plan);
    expect(plan.steps).toHaveLength(1);
    expect(step).toMatchObject({
      pool: 'workers',
      size: { cpu: 4, memoryBytes: 8 * GIB, diskBytes: 40 * GIB },
      reason:
        '3 machines of pool workers (4 vCPUs, 8 GiB) for 6 pods, such as default/web-0, that fit on no node',
    });
    expect(step?.machines.map((machine) => machine.pods.length)).toEqual([2, 2, 2]);
    expect(step?.host).toBeUndefined();
    expect(plan.counts).toMatchObject({ pending: 6, fitNew: 6, unplaced: 0 });
  });

  it('requests nothing for pods that fit on a node', () => {
    const input = anInput({ nodes: [aWorkerNode('w-1')], pods: pods(2) });
    const { plan } = decide(input);
    expect(plan.steps).toEqual([]);
    expect(plan.placements).toMatchObject([
      { pod: { name: 'web-0' }, node: 'w-1', on: 'node' },
      { pod: { name: 'web-1' }, node: 'w-1', on: 'node' },
    ]);
  });

  it.each(['requested', 'creating', 'booting', 'joining'] as const)(
    'counts a machine in phase %s as a node',
    (phase) => {
      const input = anInput({ machines: [aScalingMachine({ phase })], pods: pods(2) });
      const { plan } = decide(input);
      expect(plan.steps).toEqual([]);
      expect(plan.counts).toMatchObject({ fitProvisioning: 2 });
    },
  );

  it('counts a joining node by its pool, not by the taints that it has for a moment', () => {
    const taint = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' as const };
    const node = aWorkerNode('w-1', { taints: [taint], allocatable: { cpu: '0', memory: '0' } });
    const input = anInput({
      nodes: [node],
      machines: [aScalingMachine({ phase: 'joining', on: 'w-1', isNodeReady: false })],
      unreadyNodes: ['w-1'],
      pods: pods(2),
    });
    expect(decide(input).plan.steps).toEqual([]);
  });

  it('keeps the space of DaemonSet pods that a ready node does not have yet', () => {
    const daemon = aPod({
      name: 'agent',
      controller: 'DaemonSet',
      cpu: '2',
      spec: {
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['w-1'] }] },
              ],
            },
          },
        },
        containers: [{ resources: { requests: { cpu: '2' } } }],
      },
    });
    const withPods = (...waiting: ReturnType<typeof pods>) =>
      counts(
        anInput({
          nodes: [aWorkerNode('w-1')],
          machines: [aScalingMachine({ on: 'w-1' })],
          pods: waiting,
        }),
      );
    const [web] = pods(1, { cpu: '3' });
    if (web === undefined) throw new Error('there is no pod');
    expect(withPods(web)).toEqual({});
    expect(withPods(web, daemon)).toEqual({ workers: 1 });
  });

  it('does not count a ready machine whose Node is gone', () => {
    const input = anInput({ machines: [aScalingMachine({ phase: 'ready' })], pods: pods(1) });
    expect(counts(input)).toEqual({ workers: 1 });
  });

  it('places no pods on a node that is not Ready, also before it is tainted', () => {
    const input = anInput({
      nodes: [aWorkerNode('w-1')],
      machines: [aScalingMachine({ on: 'w-1', isNodeReady: false })],
      unreadyNodes: ['w-1'],
      pods: pods(1),
    });
    expect(counts(input)).toEqual({ workers: 1 });
  });

  it('does not count a requested machine that finds no place, and cancels it when another pool helps', () => {
    const refusal = { code: 'NO_HOST_FITS', message: 'host pve1: needs 8 GiB' };
    const input = anInput({
      pools: [aScalingPool({ name: 'first' }), aScalingPool({ name: 'second' })],
      machines: [
        aScalingMachine({ pool: 'first', phase: 'requested', placement: undefined, refusal }),
      ],
      hosts: [{ ...aHost('pve1', ['second']) }],
      pods: pods(1),
    });
    const { plan } = decide(input);
    expect(plan.steps).toMatchObject([
      { kind: 'create', pool: 'second' },
      { kind: 'cancel', pool: 'first' },
    ]);
  });

  it('does not wait for a requested machine whose regions cannot be read', () => {
    const kinds = (regions: readonly string[], over: MachineOptions = {}) =>
      decide(
        anInput({
          pools: [aScalingPool({ name: 'first', regions }), aScalingPool({ name: 'second' })],
          machines: [
            aScalingMachine({ pool: 'first', phase: 'requested', placement: undefined, ...over }),
          ],
          hosts: [{ ...aHost('pve1', ['second']) }],
          unreadRegions: { attic: 'connection refused' },
          pods: pods(1),
        }),
      ).plan.steps.map(({ kind, pool, reason }) => `${kind} ${pool}: ${reason}`);
    const replaced = [
      expect.stringContaining('create second'),
      expect.stringMatching(/^cancel first: .* has no place \(region attic cannot be read\)/),
    ];
    expect(kinds(['attic'])).toEqual(replaced);
    expect(kinds(['attic', 'lab'])).toEqual([]);
    const requestedHost = { region: 'attic', host: 'pve9' };
    expect(kinds(['attic', 'lab'], { requestedHost })).toEqual(replaced);
    const placement = { region: 'attic', host: 'pve9', name: 'first-1' };
    expect(kinds(['attic'], { phase: 'creating', placement })).toEqual([]);
  });

  it('cancels a requested machine without a place when only pods wait that it cannot help', () => {
    const refusal = { code: 'NO_HOST_FITS', message: 'host pve1: needs 8 GiB' };
    const kinds = (
      waiting: ReturnType<typeof pods>,
      pool: Readonly<Record<string, unknown>> = {},
    ) =>
      decide(
        anInput({
          pools: [aScalingPool(pool)],
          machines: [aScalingMachine({ phase: 'requested', placement: undefined, refusal })],
          hosts: [aHost('pve1', ['workers'], { memoryBytes: GIB })],
          pods: waiting,
        }),
      ).plan.steps.map(({ kind }) => kind);
    expect(kinds(pods(1, { cpu: '100' }))).toEqual(['cancel']);
    expect(kinds([], { limits: { min: 1 } })).toEqual([]);
    expect(kinds(pods(1))).toEqual([]);
    expect(kinds([...pods(1), ...pods(1, { name: 'huge', cpu: '100' })])).toEqual([]);
  });

  it('places pods on the machines that were requested for them before it packs the others', () => {
    const [a, b] = [
      aPod({ name: 'a', cpu: '3', memory: '1Gi' }),
      aPod({ name: 'b', cpu: '2', memory: '1Gi' }),
    ];
    const input = anInput({
      machines: [
        aScalingMachine({ id: 1, phase: 'booting' }),
        aScalingMachine({ id: 2, phase: 'booting' }),
      ],
      pods: [a, b],
      memory: {
        unneededSince: {},
        assignments: {
          [aScalingMachine({ id: 1 }).id]: [b.uid],
          [aScalingMachine({ id: 2 }).id]: [a.uid],
        },
      },
    });
    const { plan, memory } = decide(input);
    expect(plan.steps).toEqual([]);
    expect(plan.placements).toMatchObject([
      { pod: { name: 'a' }, node: 'workers-2', on: 'provisioning' },
      { pod: { name: 'b' }, node: 'workers-1', on: 'provisioning' },
    ]);
    expect(memory.assignments).toEqual(input.memory.assignments);
  });

  it('keeps within the limits of machines, vCPUs and memory, and says so', () => {
    const many = pods(20, { cpu: '3' });
    const limited = (limits: object) =>
      anInput({
        pools: [aScalingPool({ limits: { max: 10, ...limits } })],
        machines: [aScalingMachine({ id: 1, on: 'w-1' })],
        nodes: [aWorkerNode('w-1', { allocatable: { cpu: '0' } })],
        pods: many,
      });
    expect(counts(limited({ max: 3 }))).toEqual({ workers: 2 });
    expect(counts(limited({ cpu: 15 }))).toEqual({ workers: 2 });
    expect(counts(limited({ memory: '17Gi' }))).toEqual({ workers: 1 });
    const reasons = decide(limited({ max: 3 })).plan.refusals.map(({ reason }) => reason);
    expect(reasons).toContain('pool workers is limited to 3 machines and has 1');
    expect(decide(limited({ memory: '17Gi' })).plan.refusals.map(({ reason }) => reason)).toContain(
      'pool workers refused: needs 8 GiB, 1 GiB left of its limit of 17 GiB',
    );
  });

  it.each([
    {
      what: 'backs off',
      over: { backoff: { until: NOW + MINUTE, message: 'no route' } },
      code: 'PoolBackedOff',
      reason: 'pool workers backs off for 60s: no route',
    },
    {
      what: 'is paused',
      over: { pause: { message: 'by a person' } },
      code: 'PoolPaused',
      reason: 'pool workers is paused until it is resumed: by a person',
    },
    {
      what: 'has no VM id left',
      over: { freeIdentities: { machines: 0, reason: 'no VM id is left in 1250-1300' } },
      code: 'PoolWithoutIdentity',
      reason: 'pool workers refused: no VM id is left in 1250-1300',
    },
  ] as const)(
    'uses the next pool in the same decision when one $what',
    ({ over, code, reason }) => {
      const input = anInput({
        pools: [aScalingPool({ priority: 10 }, over), aScalingPool({ name: 'other' })],
        pods: pods(1),
      });
      expect(counts(input)).toEqual({ other: 1 });
      const alone = decide(anInput({ pools: [aScalingPool({}, over)], pods: pods(1) })).plan;
      expect(alone.steps).toEqual([]);
      expect(alone.refusals).toContainEqual(expect.objectContaining({ code, reason }));
    },
  );

  it('waits after a scale-up when the pool is configured so, and says until when', () => {
    const pool = (ago: number) =>
      aScalingPool({ scaleUp: { delayAfterAdd: '5m' } }, { lastAddAt: NOW - ago });
    const waiting = decide(anInput({ pools: [pool(4 * MINUTE)], pods: pods(1) })).plan;
    expect(waiting.steps).toEqual([]);
    expect(waiting.nextAt).toBe(NOW + MINUTE);
    expect(codes(waiting)).toContain('PoolDelayAfterAdd');
    expect(counts(anInput({ pools: [pool(5 * MINUTE)], pods: pods(1) }))).toEqual({ workers: 1 });
  });

  it('ignores pods that are too new, gated or expendable, with the reason', () => {
    const input = anInput({
      settings: { newPodDelayMs: MINUTE },
      pods: [
        aPod({ name: 'new', createdAt: NOW - 20_000 }),
        aPod({ name: 'gated', spec: { schedulingGates: [{}] } }),
        aPod({ name: 'low', priority: -11 }),
      ],
    });
    const { plan } = decide(input);
    expect(plan.steps).toEqual([]);
    expect(codes(plan)).toEqual(['PodExpendable', 'PodGated', 'PodTooNew']);
    expect(plan.nextAt).toBe(NOW + 40_000);
  });

  it('explains with numbers why a pod fits no pool', () => {
    const { plan } = decide(anInput({ pods: [aPod({ cpu: '64' })] }));
    expect(plan.refusals).toMatchObject([
      { subject: { kind: 'pod', name: 'default/pod' }, code: 'PodFitsNoPool' },
    ]);
    expect(plan.refusals[0]?.reason).toMatch(/^pod default\/pod fits no pool: pool workers: .*cpu/);
  });
});

describe('hosts', () => {
  it('are filled up to their capacity, overhead included, and refused with numbers beyond', () => {
    const pools = [aScalingPool({ memoryOverhead: '1Gi' })];
    const host = (memoryGib: number) =>
      aHost('pve2', ['workers'], { memoryBytes: memoryGib * GIB });
    const plan = (memoryGib: number) =>
      decide(anInput({ pools, hosts: [host(memoryGib)], pods: pods(5, { cpu: '3' }) })).plan;
    const machines = (memoryGib: number) => created(plan(memoryGib)).flatMap((one) => one.machines);
    expect(machines(18)).toHaveLength(2);
    expect(machines(17.9)).toHaveLength(1);
    expect(plan(6.25).refusals).toContainEqual(
      expect.objectContaining({
        subject: { kind: 'host', name: 'lab/pve2' },
        code: 'HostFull',
        reason: 'pool workers refused: host pve2 needs 9 GiB, 6.2 GiB free after reserve',
      }),
    );
  });

  it.each([
    ['cpus', { cpus: 9 }],
    ['disk', { diskBytes: 81 * GIB }],
  ])('limit the machines by %s', (_, capacity) => {
    const hosts = [aHost('pve1', ['workers'], capacity)];
    expect(counts(anInput({ hosts, pods: pods(5, { cpu: '3' }) }))).toEqual({ workers: 2 });
  });

  it('start no machine with more CPUs than they have', () => {
    const pools = [aScalingPool({ size: ['small', 'large'] })];
    const hosts = [aHost('pve1', ['workers'], { maxCpus: 4 })];
    const plan = decide(anInput({ pools, hosts, pods: [aPod({ cpu: '3' })] })).plan;
    expect(plan.steps).toEqual([]);
    expect(plan.refusals.map(({ reason }) => reason)).toContain(
      'pool workers refused: host pve1 needs 8 vCPUs, 4 free',
    );
    expect(created(decide(anInput({ pools, pods: [aPod({ cpu: '3' })] })).plan)).toMatchObject([
      { sizeName: 'large' },
    ]);
  });

  it('that one pool has filled are full for a pool with a larger reserve', () => {
    const hosts = [
      {
        region: 'lab',
        name: 'pve1',
        pools: {
          first: { cpus: 100, memoryBytes: 16 * GIB, diskBytes: 9_000 * GIB },
          second: { cpus: 100, memoryBytes: 12 * GIB, diskBytes: 9_000 * GIB },
        },
      },
    ];
    const taints = ['dedicated=second:NoSchedule'];
    const input = anInput({
      pools: [aScalingPool({ name: 'first' }), aScalingPool({ name: 'second', taints })],
      hosts,
      pods: [
        aPod({ name: 'a' }),
        aPod({
          name: 'b',
          spec: {
            containers: [{ resources: { requests: { cpu: '1' } } }],
            tolerations: [{ key: 'dedicated', operator: 'Exists' }],
            nodeSelector: { 'autoscaler.proxmox/group': 'second' },
          },
        }),
      ],
    });
    const { plan } = decide(input);
    expect(created(plan).flatMap(({ machines }) => machines)).toHaveLength(1);
    expect(plan.counts.unplaced).toBe(1);
  });

  it('that cannot be used are left out with their reason', () => {
    const refusal = { code: 'HostOffline', message: 'host pve1 is offline' };
    const hosts = [aHost('pve1', ['workers'], { refusal })];
    const { plan } = decide(anInput({ hosts, pods: pods(1) }));
    expect(plan.steps).toEqual([]);
    expect(plan.refusals.map(({ reason }) => reason)).toContain(
      'pool workers refused: host pve1 is offline',
    );
    expect(codes(plan)).toEqual(['HostUnusable', 'PodWaitsForLimit', 'PoolWithoutHost']);
  });

  it('are counted and named when a pool can use none of them', () => {
    const refused = (name: string, message: string) =>
      aHost(name, ['workers'], { refusal: { code: 'HostOffline', message } });
    const reasonOf = (over: Parameters<typeof anInput>[0]) =>
      decide(anInput({ pods: pods(1), ...over })).plan.refusals.find(
        ({ subject }) => subject.kind === 'pod',
      )?.reason;
    const offline = ['pve1', 'pve2'].map((name) => refused(name, `host ${name} is offline`));
    expect(reasonOf({ hosts: offline })).toBe(
      'pod default/web-0 waits: pool workers refused: it can use none of its 2 hosts now: host pve1 is offline; host pve2 is offline',
    );
    const stale = [
      refused('pve1', 'region lab: no answer'),
      { ...refused('b', 'no disk'), region: 'b' },
    ];
    expect(reasonOf({ hosts: stale, unreadRegions: { lab: 'no answer' } })).toBe(
      'pod default/web-0 waits: pool workers refused: it can use none of its 2 hosts now: region lab cannot be read; no disk',
    );
    expect(reasonOf({ hosts: [] })).toBe(
      'pod default/web-0 waits: pool workers refused: it has no host',
    );
  });

  it('are named by the steps for pods that are spread over zones', () => {
    const spread = {
      maxSkew: 1,
      topologyKey: 'topology.kubernetes.io/zone',
      whenUnsatisfiable: 'DoNotSchedule',
      labelSelector: { matchLabels: { app: 'db' } },
    };
    const db = Array.from({ length: 3 }, (_, index) =>
      aPod({
        name: `db-${index}`,
        labels: { app: 'db' },
        spec: {
          containers: [{ resources: { requests: { cpu: '1' } } }],
          topologySpreadConstraints: [spread],
        },
      }),
    );
    const input = anInput({ hosts: ['pve1', 'pve2', 'pve3'].map((name) => aHost(name)), pods: db });
    const steps = created(decide(input).plan);
    expect(steps.map(({ host }) => host).toSorted()).toEqual(['pve1', 'pve2', 'pve3']);
    expect(steps.every(({ region }) => region === 'lab')).toBe(true);
  });
});

describe('pool choice', () => {
  const two = (poolChoice: ScalingInput['settings']['poolChoice'], over: object = {}) =>
    anInput({
      pools: [
        aScalingPool({ name: 'big', size: 'large', ...over }),
        aScalingPool({ name: 'little', size: 'small', pricePerHour: 1 }),
      ],
      settings: { poolChoice },
      pods: pods(1),
    });

  it('priority uses the pool of the highest priority, then the first', () => {
    expect(counts(two('priority'))).toEqual({ big: 1 });
    expect(counts(two('priority', { priority: -1 }))).toEqual({ little: 1 });
  });

  it('least-waste uses the smallest machine', () => {
    expect(counts(two('least-waste'))).toEqual({ little: 1 });
  });

  it('cheapest uses the lowest price per hour', () => {
    expect(counts(two('cheapest'))).toEqual({ big: 1 });
  });

  it('balance uses the pool with the fewest machines', () => {
    const input = anInput({
      pools: ['a', 'b', 'c'].map((name) => aScalingPool({ name })),
      machines: [1, 2].map((id) =>
        aScalingMachine({ id, pool: 'a', phase: 'ready', on: `n${id}` }),
      ),
      settings: { poolChoice: 'balance' },
      pods: pods(4, { cpu: '3' }),
    });
    expect(counts(input)).toEqual({ b: 2, c: 2 });
  });

  it('random depends on the seed alone', () => {
    const pick = (seed: number) => {
      const pools = ['a', 'b', 'c'].map((name) => aScalingPool({ name }));
      return Object.keys(
        counts(anInput({ pools, seed, settings: { poolChoice: 'random' }, pods: pods(1) })),
      )[0];
    };
    expect(pick(7)).toBe(pick(7));
    const chosen = new Set(Array.from({ length: 40 }, (_, seed) => pick(seed * 7_919)));
    expect(chosen).toEqual(new Set(['a', 'b', 'c']));
  });
});

describe('size ranges', () => {
  const size = {
    min: { cpu: 1, memory: '2Gi', disk: '20Gi' },
    max: { cpu: 16, memory: '64Gi', disk: '20Gi' },
    step: { cpu: 1, memory: '1Gi' },
  };

  it('give each machine the smallest step that holds its pods and the reserves', () => {
    const pools = [aScalingPool({ size })];
    const [step] = created(
      decide(anInput({ pools, pods: [aPod({ cpu: '2500m', memory: '5Gi' })] })).plan,
    );
    expect(step?.size.cpu).toBe(3);
    // 5 GiB, 96 MiB and 1/64 for the kernel, the eviction threshold and reserves of the kubelet.
    expect(step?.size.memoryBytes).toBe(6 * GIB);
    expect(step?.sizeName).toBeUndefined();
  });

  it('put all pods on one machine if it is large enough', () => {
    const pools = [aScalingPool({ size })];
    const steps = created(
      decide(anInput({ pools, pods: pods(8, { cpu: '1', memory: '2Gi' }) })).plan,
    );
    expect(steps.flatMap(({ machines }) => machines)).toHaveLength(1);
    expect(steps[0]?.size.cpu).toBe(8);
  });

  it('reserve what joined nodes were found to lack', () => {
    const key = `4x${8 * GIB}x${20 * GIB}`;
    const learned = {
      [key]: {
        cpuMilli: 2_900,
        memoryBytes: 7 * GIB,
        ephemeralStorageBytes: 0,
        pods: 110,
        learnedAt: 0,
      },
    };
    const pools = [aScalingPool({ size }, { learned })];
    const [step] = created(
      decide(anInput({ pools, pods: [aPod({ cpu: '2500m', memory: '1Gi' })] })).plan,
    );
    expect(step?.size.cpu).toBe(4);
  });
});

describe('headroom', () => {
  it('keeps empty machines, beside those that pods need', () => {
    const pools = [aScalingPool({ headroom: { machines: 2 } })];
    expect(counts(anInput({ pools }))).toEqual({ workers: 2 });
    expect(counts(anInput({ pools, pods: pods(1, { cpu: '3' }) }))).toEqual({ workers: 3 });
    const machines = [1, 2].map((id) => aScalingMachine({ id, phase: 'booting' }));
    expect(counts(anInput({ pools, machines }))).toEqual({});
    expect(counts(anInput({ pools, machines, pods: pods(1, { cpu: '3' }) }))).toEqual({
      workers: 1,
    });
  });

  it('keeps vCPUs and memory free', () => {
    const pools = [aScalingPool({ headroom: { cpu: 6, memory: '6Gi' } })];
    expect(counts(anInput({ pools }))).toEqual({ workers: 2 });
    const node = aWorkerNode('w-1', { allocatable: { cpu: '8', memory: '16Gi' } });
    expect(counts(anInput({ pools, nodes: [node] }))).toEqual({});
  });

  it('gives way to pods at the limit of the pool', () => {
    const pools = [aScalingPool({ headroom: { machines: 2 }, limits: { max: 1 } })];
    const { plan } = decide(anInput({ pools, pods: pods(1, { cpu: '3' }) }));
    expect(plan.counts.fitNew).toBe(1);
    expect(codes(plan)).toContain('PoolHeadroomUnmet');
  });
});

describe('schedules', () => {
  const schedule = { name: 'office', start: '0 12 * * 1-5', duration: '1h', min: 3, max: 4 };
  const input = (now: number, count = 0) =>
    anInput({
      now,
      pools: [aScalingPool({ schedules: [schedule], limits: { max: 2 } })],
      pods: pods(count, { cpu: '3' }),
    });

  it('require their minimum while they are open', () => {
    expect(counts(input(NOW))).toEqual({ workers: 3 });
    expect(decide(input(NOW)).plan).toMatchObject({
      nextAt: NOW + 60 * MINUTE,
      steps: [
        {
          reason:
            '3 machines of pool workers (4 vCPUs, 8 GiB): schedule office keeps at least 3, there are 0',
        },
      ],
    });
    expect(counts(input(NOW - 1))).toEqual({});
    const unreadRegions = { lab: 'no answer' };
    expect(counts({ ...input(NOW), unreadRegions })).toEqual({});
  });

  it('replace the maximum while they are open', () => {
    expect(counts(input(NOW, 9))).toEqual({ workers: 4 });
    expect(counts(input(NOW - 1, 9))).toEqual({ workers: 2 });
  });
});
