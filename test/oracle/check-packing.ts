// SPDX-License-Identifier: Apache-2.0
// Checks a packing with the oracle: every placement in order, and every pod of a DaemonSet, admitted or
// waiting.

import type { Resources } from '../../src/model/resources.ts';
import type { Limits, Packing } from '../../src/scheduling/index.ts';
import { runOracle } from './compare.ts';
import { daemonPod, templatePod } from './generate/daemons.ts';
import { type PackCase, plannedNodes, runPack } from './generate/pools.ts';
import { emptyCluster, type Pod } from './objects.ts';
import type { OracleProcesses } from './oracle-processes.ts';

export interface PackingCheck {
  readonly problems: readonly string[];
  readonly steps: number;
  readonly machines: number;
  readonly unplaced: number;
  /** DaemonSet pods that run on the machines from the start, from the end of the plan, or not at all. */
  readonly daemons: number;
  readonly late: number;
  readonly waiting: number;
}

interface Placement {
  readonly pod: Pod;
  readonly node: string;
  /** Only checked, not placed: the pod is expected to wait. */
  readonly probe?: true;
  /** As its controller sends it: the API server adds defaults. */
  readonly created?: true;
  /** Counts as placed whether or not it fits. */
  readonly nominated?: true;
}

export async function checkPacking(oracle: OracleProcesses, one: PackCase): Promise<PackingCheck> {
  const packing = runPack(one);
  const machines = await expectedMachines(oracle, one, packing);
  const placements = placementsOf(one, packing, machines);
  const response = await oracle.request({
    kind: 'place',
    cluster: one.cluster,
    arriving: plannedNodes(packing),
    placements,
    featureGates: one.featureGates,
  });
  const steps = (response['steps'] ?? []) as readonly (readonly string[])[];
  const problems = placements.flatMap((placement, i) =>
    problemOf(placement, steps[i] ?? ['no response']),
  );
  return {
    problems: [
      ...machines.flatMap(unexpectedDaemonPods),
      ...problems,
      ...missingPods(one, packing),
      ...unexplainedPods(packing),
      ...exceededLimits(one, packing),
    ],
    steps: packing.steps.length,
    machines: packing.machines.length,
    unplaced: packing.unplaced.length,
    daemons: packing.machines.reduce((sum, { daemons }) => sum + daemons.length, 0),
    late: packing.lateDaemonPods.length,
    waiting: placements.filter(({ probe }) => probe === true).length,
  };
}

function problemOf(placement: Placement, plugins: readonly string[]): string[] {
  const { pod, node, probe } = placement;
  const { name } = pod.metadata;
  if (placement.nominated === true) return [];
  if (probe === true)
    return plugins.length > 0 ? [] : [`${name} should run on ${node} but is not planned there`];
  return plugins.length > 0 ? [`${name} on ${node} is rejected by ${plugins.join()}`] : [];
}

interface ExpectedMachine {
  readonly node: string;
  /** The pods that DaemonSet controllers would create for it, in order. */
  readonly daemonPods: readonly Pod[];
  /** Names of the daemon pods in the packing: admitted from the start, and admitted late. */
  readonly early: ReadonlySet<string>;
  readonly late: ReadonlySet<string>;
}

/** The filters that a DaemonSet controller applies before it creates a pod for a node. */
const DAEMON_SET_FILTERS = ['NodeUnschedulable', 'NodeName', 'TaintToleration', 'NodeAffinity'];

async function expectedMachines(
  oracle: OracleProcesses,
  { cluster, daemonSets, featureGates }: PackCase,
  packing: Packing,
): Promise<readonly ExpectedMachine[]> {
  const { namespaces } = cluster;
  const nodes = plannedNodes(packing);
  const pending = daemonSets.map(templatePod);
  const hasQuestions = pending.length > 0 && nodes.length > 0;
  const { rejections } = hasQuestions
    ? await runOracle(oracle, {
        cluster: { ...emptyCluster(), namespaces, nodes },
        pending,
        ...(featureGates !== undefined && { featureGates }),
      })
    : { rejections: [] };
  return packing.machines.map(({ node: { name }, daemons }, n) => ({
    node: name,
    daemonPods: daemonSets
      .filter((_, d) => !rejections[d]?.[n]?.some((plugin) => DAEMON_SET_FILTERS.includes(plugin)))
      .map((set) => daemonPod(set, name)),
    early: new Set(daemons.map((one) => one.name)),
    late: new Set(
      packing.lateDaemonPods.filter((one) => one.node === name).map(({ pod }) => pod.name),
    ),
  }));
}

function unexpectedDaemonPods({ node, daemonPods, early, late }: ExpectedMachine): string[] {
  const names = new Set(daemonPods.map(({ metadata }) => metadata.name));
  return [...early, ...late]
    .filter((name) => !names.has(name))
    .map((name) => `${name} is planned on ${node}, but no DaemonSet creates it there`);
}

/**
 * The steps of the plan, each new machine preceded by its daemon pods; then the late daemon pods, then the
 * waiting ones.
 */
function placementsOf(
  one: PackCase,
  packing: Packing,
  machines: readonly ExpectedMachine[],
): readonly Placement[] {
  const { pending } = one;
  const sources = new Map(pending.map((pod) => [pod.metadata.uid, pod]));
  const closed = new Map(machines.map((machine) => [machine.node, machine]));
  const steps = packing.steps.flatMap(({ pod, node }) => {
    const source = sources.get(pod.uid);
    const first = closed.get(node);
    closed.delete(node);
    const daemons =
      first === undefined ? [] : daemonPlacements(first, (name) => first.early.has(name));
    return source === undefined ? daemons : [...daemons, { pod: source, node }];
  });
  const late = packing.lateDaemonPods.flatMap(({ pod, node }) =>
    machines
      .filter((machine) => machine.node === node)
      .flatMap((machine) => daemonPlacements(machine, (name) => name === pod.name)),
  );
  const waiting = machines
    .flatMap((machine) =>
      daemonPlacements(machine, (name) => !machine.early.has(name) && !machine.late.has(name)),
    )
    .map((one): Placement => ({ ...one, probe: true }));
  return [...nominatedPlacements(one), ...steps, ...late, ...waiting];
}

/** Pods for which the scheduler is preempting others count as placed. */
function nominatedPlacements({ cluster, pending }: PackCase): readonly Placement[] {
  const known = new Set(pending.map(({ metadata }) => metadata.uid));
  const others = cluster.pods.filter(
    ({ metadata, spec }) => spec.nodeName === undefined && !known.has(metadata.uid),
  );
  const nodes = new Set(cluster.nodes.map(({ metadata }) => metadata.name));
  return [...pending, ...others].flatMap((pod) => {
    const node = pod.status?.nominatedNodeName ?? '';
    return nodes.has(node) ? [{ pod, node, nominated: true as const }] : [];
  });
}

function daemonPlacements(
  machine: ExpectedMachine,
  isSelected: (name: string) => boolean,
): readonly Placement[] {
  return machine.daemonPods
    .filter(({ metadata }) => isSelected(metadata.name))
    .map((pod) => ({ pod, node: machine.node, created: true }));
}

/** For a pod that is not placed, every pool must have a reason or a limit. */
function unexplainedPods({ unplaced }: Packing): string[] {
  return unplaced.flatMap(({ pod, refusals }) =>
    refusals
      .filter(({ reasons, limit }) => reasons.length === 0 && limit === undefined)
      .map(({ pool, domain }) => `${pod.name} is not placed, but ${pool}/${domain} has no reason`),
  );
}

function exceededLimits({ pools }: PackCase, { machines }: Packing): string[] {
  return pools.flatMap(({ name, limits = {}, domains = [] }) => {
    const own = machines.filter(({ pool }) => pool === name);
    const inDomains = domains.flatMap((domain) =>
      problemsOfLimits(
        `${name}/${domain.name}`,
        domain.limits ?? {},
        own.filter((one) => one.domain === domain.name),
      ),
    );
    return [...problemsOfLimits(name, limits, own), ...inDomains];
  });
}

function problemsOfLimits(name: string, limits: Limits, machines: Packing['machines']): string[] {
  const total = (of: (capacity: Resources) => number): number =>
    machines.reduce((sum, { size }) => sum + of(size.capacity), 0);
  const used = {
    machines: machines.length,
    cpuMilli: total(({ cpuMilli }) => cpuMilli),
    memoryBytes: total(({ memoryBytes }) => memoryBytes),
  };
  return (['machines', 'cpuMilli', 'memoryBytes'] as const)
    .filter((kind) => used[kind] > (limits[kind] ?? Number.POSITIVE_INFINITY))
    .map((kind) => `${name} has ${used[kind]} ${kind}, its limit is ${limits[kind]}`);
}

/** Every pod must occur exactly once: placed, unplaced or skipped. */
function missingPods(one: PackCase, packing: Packing): string[] {
  const seen = new Map<string, number>();
  const nominated = packing.existing.filter(({ how }) => how === 'nominated');
  for (const { pod } of [...packing.steps, ...nominated, ...packing.unplaced, ...packing.skipped])
    seen.set(pod.uid, (seen.get(pod.uid) ?? 0) + 1);
  return one.pending
    .filter(({ metadata }) => seen.get(metadata.uid) !== 1)
    .map(
      ({ metadata }) =>
        `${metadata.name} occurs ${seen.get(metadata.uid) ?? 0} times in the result`,
    );
}
