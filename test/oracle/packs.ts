// SPDX-License-Identifier: Apache-2.0
// Packs random pods onto random clusters and pools, and has the oracle judge every placement in its turn.

import type { Packing } from '../../src/scheduling/index.ts';
import { daemonPod } from './generate/daemons.ts';
import { type PackCase, packed, planned, randomPackCase } from './generate/pools.ts';
import type { Cluster, Pod } from './objects.ts';
import { judged } from './oracle.ts';
import { readPackRegressions, writePackRegression } from './regressions.ts';
import type { Report, Task } from './replay.ts';
import { shrink } from './shrink.ts';

/** One pack case asks for dozens of verdicts, so few are as good as many of the others. */
const SHARE = 20;
const ENOUGH_PROBLEMS = 3;

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

interface Tally {
  steps: number;
  machines: number;
  unplaced: number;
  passed: number;
  failed: number;
}

export async function runPacks(task: Task): Promise<Report> {
  const tally: Tally = { steps: 0, machines: 0, unplaced: 0, passed: 0, failed: 0 };
  await replayPacks(task, tally);
  const cases = Math.ceil(task.cases / SHARE);
  for (let index = 0; index < cases && tally.failed < ENOUGH_PROBLEMS; index += 1) {
    const seed = task.seed + index;
    const packing = await judgePack(task, randomPackCase(seed));
    tally.steps += packing.steps;
    tally.machines += packing.machines;
    tally.unplaced += packing.unplaced;
    if (packing.problems.length === 0) tally.passed += 1;
    else {
      tally.failed += 1;
      await explain(task, seed);
    }
  }
  const { steps, machines, unplaced, passed, failed } = tally;
  task.say(
    `${passed} of ${passed + failed} packings agree: ${steps} placements, ${machines} machines, ${unplaced} pods unplaced`,
  );
  return { passed, failed };
}

async function replayPacks(task: Task, tally: Tally): Promise<void> {
  for (const { file, found } of readPackRegressions()) {
    const { problems } = await judgePack(task, found);
    if (problems.length === 0) tally.passed += 1;
    else {
      tally.failed += 1;
      task.say(`${file}: ${problems.join('; ')}`);
    }
  }
}

interface JudgedPack {
  readonly problems: readonly string[];
  readonly steps: number;
  readonly machines: number;
  readonly unplaced: number;
}

async function judgePack(task: Task, one: PackCase): Promise<JudgedPack> {
  const packing = packed(one);
  const placements = placementsOf(one, packing);
  const answer = await task.judge.ask({
    kind: 'place',
    cluster: one.cluster,
    arriving: planned(packing),
    placements,
  });
  const steps = (answer['steps'] ?? []) as readonly (readonly string[])[];
  const refused = placements.flatMap(({ pod, node }, i) => {
    const plugins = steps[i] ?? ['nothing'];
    if (plugins.length === 0) return [];
    return [`${pod.metadata.name} on ${node} is refused by ${plugins.join()}`];
  });
  return {
    problems: [...refused, ...lost(one, packing), ...(await wrongDaemons(task, one, packing))],
    steps: packing.steps.length,
    machines: packing.machines.length,
    unplaced: packing.unplaced.length,
  };
}

interface Placement {
  readonly pod: Pod;
  readonly node: string;
}

/** The steps of the plan; on a new machine its daemons come first. */
function placementsOf({ pending, daemonSets }: PackCase, packing: Packing): Placement[] {
  const sources = new Map(pending.map((pod) => [pod.metadata.uid, pod]));
  const daemons = new Map(packing.machines.map((one) => [one.node.name, daemonNames(one)]));
  return packing.steps.flatMap(({ pod, node }) => {
    const source = sources.get(pod.uid);
    const names = daemons.get(node) ?? new Set();
    daemons.delete(node);
    const first = daemonSets
      .map((set) => ({ pod: daemonPod(set, node), node }))
      .filter((one) => names.has(one.pod.metadata.name));
    return source === undefined ? first : [...first, { pod: source, node }];
  });
}

function daemonNames({ daemons }: Packing['machines'][number]): ReadonlySet<string> {
  return new Set(daemons.map(({ name }) => name));
}

/** Of the filters, those that a DaemonSet's controller asks before it makes a pod for a node. */
const OF_DAEMONS = ['NodeUnschedulable', 'NodeName', 'TaintToleration', 'NodeAffinity'];

async function wrongDaemons(
  { judge }: Task,
  { cluster, daemonSets }: PackCase,
  packing: Packing,
): Promise<string[]> {
  const { namespaces } = cluster;
  const wrong: string[] = [];
  for (const [index, node] of planned(packing).entries()) {
    const { name } = node.metadata;
    const pending = daemonSets.map((set) => daemonPod(set, name));
    if (pending.length === 0) break;
    const bare = { ...EMPTY, namespaces, nodes: [node] };
    const { rejections } = await judged(judge, { cluster: bare, pending });
    const machine = packing.machines[index];
    const planned = machine === undefined ? new Set() : daemonNames(machine);
    for (const [d, { metadata }] of pending.entries()) {
      const runs = !(rejections[d]?.[0] ?? []).some((plugin) => OF_DAEMONS.includes(plugin));
      if (runs !== planned.has(metadata.name))
        wrong.push(`${metadata.name} ${runs ? 'is missing' : 'would not run'} there`);
    }
  }
  return wrong;
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

async function explain(task: Task, seed: number): Promise<void> {
  const smallest = await shrink(randomPackCase(seed), async (candidate) => {
    try {
      return (await judgePack(task, candidate)).problems.length > 0;
    } catch {
      return false; // taken apart too far
    }
  });
  const { problems } = await judgePack(task, smallest);
  task.say(`DISAGREEMENT: in packing (repeat: --seed ${seed} --cases 1): ${problems.join('; ')}`);
  task.say(JSON.stringify(smallest).slice(0, 8000));
  if (task.keep) task.say(`kept in ${writePackRegression(`pack-${seed}`, smallest)}`);
}
