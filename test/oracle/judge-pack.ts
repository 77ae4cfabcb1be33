// SPDX-License-Identifier: Apache-2.0
// Has the oracle judge a packing: every placement in its turn, and every pod of a DaemonSet, whether it comes
// or waits.

import type { Packing } from '../../src/scheduling/index.ts';
import { daemonPod, templatePod } from './generate/daemons.ts';
import { type PackCase, packed, planned } from './generate/pools.ts';
import type { Judges } from './judges.ts';
import type { Cluster, Pod } from './objects.ts';
import { judged } from './oracle.ts';

const EMPTY: Cluster = {
  nodes: [],
  pods: [],
  namespaces: [],
  persistentVolumes: [],
  persistentVolumeClaims: [],
  storageClasses: [],
  csiNodes: [],
  csiDrivers: [],
  csiStorageCapacities: [],
  volumeAttachments: [],
};

export interface JudgedPack {
  readonly problems: readonly string[];
  readonly steps: number;
  readonly machines: number;
  readonly unplaced: number;
  /** Pods of DaemonSets that would run on the machines from the start, in the end, or not at all. */
  readonly daemons: number;
  readonly late: number;
  readonly waiting: number;
}

interface Placement {
  readonly pod: Pod;
  readonly node: string;
  /** Only asked about: it waits. */
  readonly probe?: true;
}

export async function judgePack(judge: Judges, one: PackCase): Promise<JudgedPack> {
  const packing = packed(one);
  const machines = await machinesOf(judge, one, packing);
  const placements = placementsOf(one, packing, machines);
  const answer = await judge.ask({
    kind: 'place',
    cluster: one.cluster,
    arriving: planned(packing),
    placements,
  });
  const steps = (answer['steps'] ?? []) as readonly (readonly string[])[];
  const problems = placements.flatMap((placement, i) =>
    problemOf(placement, steps[i] ?? ['nothing']),
  );
  return {
    problems: [...machines.flatMap(uninvited), ...problems, ...lost(one, packing)],
    steps: packing.steps.length,
    machines: packing.machines.length,
    unplaced: packing.unplaced.length,
    daemons: packing.machines.reduce((sum, { daemons }) => sum + daemons.length, 0),
    late: packing.latecomers.length,
    waiting: placements.filter(({ probe }) => probe === true).length,
  };
}

function problemOf({ pod, node, probe }: Placement, plugins: readonly string[]): string[] {
  const { name } = pod.metadata;
  if (probe === true) return plugins.length > 0 ? [] : [`${name} is missing on ${node}`];
  return plugins.length > 0 ? [`${name} on ${node} is refused by ${plugins.join()}`] : [];
}

interface Machine {
  readonly node: string;
  /** What the controllers of DaemonSets would make for it, in their order. */
  readonly made: readonly Pod[];
  /** Names of those that the packing says would run there: from the start, and in the end. */
  readonly early: ReadonlySet<string>;
  readonly late: ReadonlySet<string>;
}

/** Of the filters, those that a DaemonSet's controller asks before it makes a pod for a node. */
const OF_DAEMONS = ['NodeUnschedulable', 'NodeName', 'TaintToleration', 'NodeAffinity'];

async function machinesOf(
  judge: Judges,
  { cluster, daemonSets }: PackCase,
  packing: Packing,
): Promise<readonly Machine[]> {
  const { namespaces } = cluster;
  const nodes = planned(packing);
  const pending = daemonSets.map(templatePod);
  const isAsked = pending.length > 0 && nodes.length > 0;
  const { rejections } = isAsked
    ? await judged(judge, { cluster: { ...EMPTY, namespaces, nodes }, pending })
    : { rejections: [] };
  return packing.machines.map(({ node: { name }, daemons }, n) => ({
    node: name,
    made: daemonSets
      .filter((_, d) => !rejections[d]?.[n]?.some((plugin) => OF_DAEMONS.includes(plugin)))
      .map((set) => daemonPod(set, name)),
    early: new Set(daemons.map((one) => one.name)),
    late: new Set(packing.latecomers.filter((one) => one.node === name).map(({ pod }) => pod.name)),
  }));
}

function uninvited({ node, made, early, late }: Machine): string[] {
  const names = new Set(made.map(({ metadata }) => metadata.name));
  return [...early, ...late]
    .filter((name) => !names.has(name))
    .map((name) => `${name} is no pod of ${node}`);
}

/** The steps of the plan, on a new machine after its daemons; then who came late, then who must still wait. */
function placementsOf(
  { pending }: PackCase,
  packing: Packing,
  machines: readonly Machine[],
): readonly Placement[] {
  const sources = new Map(pending.map((pod) => [pod.metadata.uid, pod]));
  const closed = new Map(machines.map((machine) => [machine.node, machine]));
  const steps = packing.steps.flatMap(({ pod, node }) => {
    const source = sources.get(pod.uid);
    const first = closed.get(node);
    closed.delete(node);
    const daemons = first === undefined ? [] : made(first, (name) => first.early.has(name));
    return source === undefined ? daemons : [...daemons, { pod: source, node }];
  });
  const late = packing.latecomers.flatMap(({ pod, node }) =>
    machines
      .filter((machine) => machine.node === node)
      .flatMap((machine) => made(machine, (name) => name === pod.name)),
  );
  const waiting = machines
    .flatMap((machine) =>
      made(machine, (name) => !machine.early.has(name) && !machine.late.has(name)),
    )
    .map((one): Placement => ({ ...one, probe: true }));
  return [...steps, ...late, ...waiting];
}

function made(machine: Machine, isMeant: (name: string) => boolean): readonly Placement[] {
  return machine.made
    .filter(({ metadata }) => isMeant(metadata.name))
    .map((pod) => ({ pod, node: machine.node }));
}

/** Every pod must come out once: placed, unplaced or skipped. */
function lost(one: PackCase, packing: Packing): string[] {
  const seen = new Map<string, number>();
  for (const { pod } of [...packing.steps, ...packing.unplaced, ...packing.skipped])
    seen.set(pod.uid, (seen.get(pod.uid) ?? 0) + 1);
  return one.pending
    .filter(({ metadata }) => seen.get(metadata.uid) !== 1)
    .map(({ metadata }) => `${metadata.name} comes out ${seen.get(metadata.uid) ?? 0} times`);
}
