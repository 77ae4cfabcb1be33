// SPDX-License-Identifier: Apache-2.0
// Plans carried out on virtual time: limits hold, evicted pods have a place, and an unchanging workload causes no churn.
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Pod } from '../model/pod.ts';
import type { Plan, ScalingPool } from './index.ts';
import { aHost, aPod, aScalingPool, GIB, MINUTE } from './testing/builders.ts';
import { ModelCluster } from './testing/model-cluster.ts';

const ZONE = 'topology.kubernetes.io/zone';
const HOSTNAME = 'kubernetes.io/hostname';

const aDeployment = fc.record({
  replicas: fc.integer({ min: 1, max: 8 }),
  cpu: fc.constantFrom(100, 250, 500, 900, 1_500, 3_000),
  memoryMib: fc.constantFrom(64, 256, 1_024, 3_000),
  rule: fc.constantFrom(
    'none',
    'none',
    'none',
    'anti-affinity',
    'zone-spread',
    'dedicated',
    'affinity',
  ),
});
type Deployment = typeof aDeployment extends fc.Arbitrary<infer T> ? T : never;

function constraintsOf(rule: Deployment['rule'], app: string): object {
  const labelSelector = { matchLabels: { app } };
  const term = (topologyKey: string) => ({
    requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey, labelSelector }],
  });
  switch (rule) {
    case 'anti-affinity':
      return { affinity: { podAntiAffinity: term(HOSTNAME) } };
    case 'affinity':
      return { affinity: { podAffinity: term(ZONE) } };
    case 'zone-spread':
      return {
        topologySpreadConstraints: [
          { maxSkew: 1, topologyKey: ZONE, whenUnsatisfiable: 'DoNotSchedule', labelSelector },
        ],
      };
    case 'dedicated':
      return {
        nodeSelector: { 'autoscaler.proxmox/group': 'dedicated' },
        tolerations: [{ key: 'dedicated', operator: 'Exists' }],
      };
    case 'none':
      return {};
  }
}

function podsOf({ replicas, cpu, memoryMib, rule }: Deployment, index: number): readonly Pod[] {
  const app = `app-${index}`;
  const requests = { cpu: `${cpu}m`, memory: `${memoryMib}Mi` };
  return Array.from({ length: replicas }, (_, replica) =>
    aPod({
      name: `${app}-${replica}`,
      labels: { app },
      spec: { containers: [{ resources: { requests } }], ...constraintsOf(rule, app) },
    }),
  );
}

const scaleDown = { unneededTime: '5m', delayAfterAdd: '2m', maxConcurrent: 2 };

function pools(max: number): readonly ScalingPool[] {
  return [
    aScalingPool({
      name: 'small',
      size: { cpu: 2, memory: '4Gi', disk: '20Gi' },
      limits: { max },
      scaleDown,
    }),
    aScalingPool({
      name: 'range',
      size: {
        min: { cpu: 2, memory: '4Gi', disk: '20Gi' },
        max: { cpu: 8, memory: '16Gi', disk: '20Gi' },
        step: { cpu: 2, memory: '2Gi' },
      },
      limits: { max: 5, cpu: 30 },
      scaleDown,
    }),
    aScalingPool({
      name: 'dedicated',
      taints: ['dedicated=yes:NoSchedule'],
      memoryOverhead: '512Mi',
      limits: { max, memory: '40Gi' },
      scaleDown,
    }),
  ];
}

interface ModelCase {
  readonly max: number;
  readonly hostGib: number;
  readonly poolChoice: 'least-waste' | 'balance' | 'cheapest';
  /** Of the first deployment; absent: it has no budget. */
  readonly disruptionsAllowed?: number;
}

function aModel({ max, hostGib, poolChoice, disruptionsAllowed }: ModelCase): ModelCluster {
  const names = ['small', 'range', 'dedicated'];
  return new ModelCluster({
    pools: pools(max),
    hosts: ['pve1', 'pve2', 'pve3'].map((name) =>
      aHost(name, names, { memoryBytes: hostGib * GIB, cpus: 40, diskBytes: 900 * GIB }),
    ),
    settings: { poolChoice },
    ...(disruptionsAllowed !== undefined && {
      disruptionBudgets: [
        {
          name: 'first',
          namespace: 'default',
          selector: {
            selects: 'matching' as const,
            requirements: [{ key: 'app', operator: 'In' as const, values: ['app-0'] }],
          },
          disruptionsAllowed,
        },
      ],
    }),
  });
}

const aCase = fc.record({
  deployments: fc.array(aDeployment, { minLength: 1, maxLength: 8 }),
  max: fc.integer({ min: 1, max: 12 }),
  hostGib: fc.constantFrom(12, 40, 200),
  poolChoice: fc.constantFrom('least-waste' as const, 'balance' as const, 'cheapest' as const),
});

const STEP_MS = 30_000;

function run(model: ModelCluster, ms: number): readonly Plan[] {
  return Array.from({ length: ms / STEP_MS }, () => model.tick(STEP_MS));
}

function kinds(plans: readonly Plan[]): readonly string[] {
  return plans.flatMap(({ steps }) => steps.map(({ kind }) => kind));
}

const aChange = fc.record({
  /** Minutes after the change before. */
  after: fc.integer({ min: 0, max: 15 }),
  added: fc.array(aDeployment, { maxLength: 3 }),
  /** Removes the pods of every n-th deployment; 0 removes none. */
  removed: fc.integer({ min: 0, max: 4 }),
});

it('a changing workload never exceeds a limit, and every evicted pod has a place', () => {
  fc.assert(
    fc.property(
      aCase,
      fc.array(aChange, { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 0, max: 2 }),
      ({ max, hostGib, poolChoice }, changes, disruptionsAllowed) => {
        const model = aModel({ max, hostGib, poolChoice, disruptionsAllowed });
        let count = 0;
        for (const { after, added, removed } of changes) {
          // The model throws when a step exceeds a limit, or when a pod does not fit where the plan says.
          run(model, after * MINUTE);
          model.remove(({ labels }) => {
            const index = Number(labels['app']?.split('-')[1]);
            return removed > 0 && index % removed === 0;
          });
          model.add(added.flatMap((one, index) => podsOf(one, count + index)));
          count += added.length;
        }
        run(model, 30 * MINUTE);
        const settled = model.pending.length;
        expect(kinds(run(model, 20 * MINUTE)).filter((kind) => kind === 'create')).toEqual([]);
        expect(model.pending.length, model.log.join('\n')).toBe(settled);
      },
    ),
    { numRuns: 15 },
  );
});

it('an unchanging workload gets its machines once, then only fewer, then nothing happens', () => {
  fc.assert(
    fc.property(aCase, ({ deployments, max, hostGib, poolChoice }) => {
      const model = aModel({ max, hostGib, poolChoice });
      model.add(deployments.flatMap(podsOf));
      run(model, 10 * MINUTE);
      const waiting = model.pending.length;
      const later = run(model, 50 * MINUTE);
      expect(
        kinds(later).filter((kind) => kind === 'create'),
        model.log.join('\n'),
      ).toEqual([]);
      expect(model.pending.length, model.log.join('\n')).toBe(waiting);
      expect(kinds(run(model, 60 * MINUTE)), model.log.join('\n')).toEqual([]);
    }),
    { numRuns: 25 },
  );
});
