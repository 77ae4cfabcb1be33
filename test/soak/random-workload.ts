// SPDX-License-Identifier: Apache-2.0
// Random workloads: Deployments, StatefulSets, DaemonSets and bare pods of many sizes, with the rules of the scheduler and
// of evictions.
import { isDeepStrictEqual } from 'node:util';
import type { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { pick } from './faults.ts';

export interface WorkloadObject {
  readonly apiVersion: string;
  readonly plural: string;
  readonly body: {
    readonly metadata: { readonly name: string; readonly namespace: string };
    readonly [field: string]: unknown;
  };
}

/** The pool whose machines have the taint `dedicated`. */
export const DEDICATED = 'dedicated';
/** Label of the pods, with the name of their workload. */
export const APP = 'app';
/** Begins the names of workloads whose pods fit on no machine. */
export const IMPOSSIBLE = 'impossible';

const HOSTNAME = 'kubernetes.io/hostname';
const ZONE = 'topology.kubernetes.io/zone';
const GROUP = 'autoscaler.proxmox/group';
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';

/** More than a machine of pool small has. */
const LARGE_CPUS = '3';
const CPUS = [
  '0',
  '50m',
  '100m',
  '250m',
  '333m',
  '500m',
  '900m',
  '1',
  '1500m',
  '1900m',
  LARGE_CPUS,
];
const MEMORIES = ['0', '32Mi', '128Mi', '300Mi', '512Mi', '1Gi', '1500Mi', '2500Mi', '3Gi'];

interface Template {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly spec: Readonly<Record<string, unknown>>;
}

export interface RandomWorkloadOptions {
  readonly random: SeededRandom;
  /** Begins the names. */
  readonly prefix: string;
  /** Whether all pods may be evicted at some time. */
  readonly isMovable: boolean;
}

/** Objects of 2 to 7 workloads. */
export function randomWorkload(options: RandomWorkloadOptions): readonly WorkloadObject[] {
  const { random, prefix } = options;
  const names = Array.from(
    { length: 2 + random.integer(6) },
    (_, index) => `${random.integer(25) === 0 ? `${IMPOSSIBLE}-` : ''}${prefix}-${index}`,
  );
  const apps = names.flatMap((name) => anApp(options, name, names));
  return random.integer(2) === 0 ? [...apps, aDaemonSet(random, `${prefix}-agent`)] : apps;
}

function anApp(
  { random, isMovable }: RandomWorkloadOptions,
  name: string,
  others: readonly string[],
): readonly WorkloadObject[] {
  const replicas = 1 + random.integer(pick(random, [2, 4, 12]));
  const rule = placementRule(random, name, others);
  const template = podTemplate(random, name, isMovable ? rule : { ...rule, ...hindrance(random) });
  const selector = { matchLabels: { [APP]: name } };
  const metadata = { name, namespace: 'default' };
  // Its pods are created one after the other, so that no plan has them all.
  const isStateful = !isMovable && random.integer(3) === 0;
  const spec = { replicas, selector, template };
  const workload: WorkloadObject = isStateful
    ? {
        apiVersion: 'apps/v1',
        plural: 'statefulsets',
        body: { metadata, spec: { ...spec, serviceName: name } },
      }
    : { apiVersion: 'apps/v1', plural: 'deployments', body: { metadata, spec } };
  const budget = disruptionBudget(random, { replicas, isMovable });
  if (budget === undefined) return [workload];
  const body = { metadata, spec: { ...budget, selector } };
  return [workload, { apiVersion: 'policy/v1', plural: 'poddisruptionbudgets', body }];
}

function disruptionBudget(
  random: SeededRandom,
  { replicas, isMovable }: { readonly replicas: number; readonly isMovable: boolean },
): object | undefined {
  if (random.integer(3) === 0) return undefined;
  return pick(random, [
    { maxUnavailable: 1 },
    { maxUnavailable: '30%' },
    { minAvailable: replicas - 1 },
    { maxUnavailable: isMovable ? 2 : 0 },
  ]);
}

function podTemplate(random: SeededRandom, name: string, rule: PodRule): Template {
  const isImpossible = name.startsWith(IMPOSSIBLE);
  const requests = {
    cpu: isImpossible ? '100' : pick(random, CPUS),
    memory: pick(random, MEMORIES),
  };
  return {
    metadata: { labels: { [APP]: name }, annotations: rule.annotations ?? {} },
    spec: {
      containers: [{ name: 'main', image: 'x', resources: { requests } }],
      terminationGracePeriodSeconds: pick(random, [0, 5, 30]),
      ...(isImpossible ? {} : onFittingPool(rule.spec, requests.cpu)),
    },
  };
}

/** A pod that is too large for its pool would wait for ever. */
function onFittingPool(spec: PodRule['spec'], cpu: string): PodRule['spec'] {
  const isTooLarge =
    cpu === LARGE_CPUS && isDeepStrictEqual(spec['nodeSelector'], { [GROUP]: 'small' });
  return isTooLarge ? { ...spec, nodeSelector: { [GROUP]: 'large' } } : spec;
}

interface PodRule {
  readonly spec: Readonly<Record<string, unknown>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Most pods have none. */
function hindrance(random: SeededRandom): Partial<PodRule> {
  const rules: readonly Partial<PodRule>[] = [
    { annotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false' } },
    { annotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'true' } },
    { annotations: { 'karpenter.sh/do-not-disrupt': 'true' } },
    { spec: { volumes: [{ name: 'scratch', emptyDir: {} }] } },
    { spec: { tolerations: [{ operator: 'Exists' }] } },
  ];
  return random.integer(2) === 0 ? pick(random, rules) : {};
}

function placementRule(random: SeededRandom, name: string, others: readonly string[]): PodRule {
  const own = { matchLabels: { [APP]: name } };
  const spread = (topologyKey: string, whenUnsatisfiable: string) => ({
    topologySpreadConstraints: [
      { maxSkew: 1 + random.integer(2), topologyKey, whenUnsatisfiable, labelSelector: own },
    ],
  });
  const rules: readonly (() => Readonly<Record<string, unknown>>)[] = [
    () => ({}),
    () => ({}),
    () => ({}),
    () => ({ affinity: { podAntiAffinity: required(own, HOSTNAME) } }),
    () => ({ affinity: { podAntiAffinity: preferred(own, HOSTNAME) } }),
    () => ({ affinity: { podAffinity: required(own, ZONE) } }),
    () => ({ affinity: { podAntiAffinity: required(anyOf(random, others), HOSTNAME) } }),
    () => spread(HOSTNAME, 'DoNotSchedule'),
    () => spread(HOSTNAME, 'ScheduleAnyway'),
    () => spread(ZONE, 'DoNotSchedule'),
    () => ({ nodeSelector: { [GROUP]: pick(random, ['small', 'large']) } }),
    () => ({
      nodeSelector: { [GROUP]: DEDICATED },
      tolerations: [{ key: DEDICATED, operator: 'Exists' }],
    }),
    () => ({ tolerations: [{ key: DEDICATED, operator: 'Exists' }] }),
  ];
  return { spec: pick(random, rules)() };
}

function anyOf(random: SeededRandom, names: readonly string[]): object {
  return { matchExpressions: [{ key: APP, operator: 'In', values: [pick(random, names)] }] };
}

function required(labelSelector: object, topologyKey: string): object {
  return { [REQUIRED]: [{ labelSelector, topologyKey }] };
}

function preferred(labelSelector: object, topologyKey: string): object {
  const podAffinityTerm = { labelSelector, topologyKey };
  return { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm }] };
}

function aDaemonSet(random: SeededRandom, name: string): WorkloadObject {
  const labels = { [APP]: name };
  const requests = { cpu: pick(random, ['20m', '100m']), memory: pick(random, ['32Mi', '200Mi']) };
  const spec = {
    containers: [{ name: 'main', image: 'x', resources: { requests } }],
    // Otherwise pending pods could take its place on a node that has just become ready.
    tolerations: [{ operator: 'Exists' }],
  };
  return {
    apiVersion: 'apps/v1',
    plural: 'daemonsets',
    body: {
      metadata: { name, namespace: 'default' },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    },
  };
}
