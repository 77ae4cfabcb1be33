// SPDX-License-Identifier: Apache-2.0
// Packs random pods onto random clusters and pools, and has the oracle judge every placement in its turn.

import type { Pod as ModelPod } from '../../src/model/pod.ts';
import type { Packing } from '../../src/scheduling/index.ts';
import { type PackCase, packed, planned, randomPackCase } from './generate/pools.ts';
import type { Report, Task } from './replay.ts';

/** One pack case asks for dozens of verdicts, so few are as good as many of the others. */
const SHARE = 20;

interface Tally {
  steps: number;
  machines: number;
  unplaced: number;
  passed: number;
  failed: number;
}

export async function runPacks(task: Task): Promise<Report> {
  const tally: Tally = { steps: 0, machines: 0, unplaced: 0, passed: 0, failed: 0 };
  for (let index = 0; index < Math.ceil(task.cases / SHARE); index += 1) {
    const seed = task.seed + index;
    const problems = await judgePack(task, randomPackCase(seed), tally);
    if (problems.length === 0) tally.passed += 1;
    else {
      tally.failed += 1;
      if (tally.failed <= 3) task.say(`PACK, seed ${seed}: ${problems.join('; ').slice(0, 2000)}`);
    }
  }
  const { steps, machines, unplaced, passed, failed } = tally;
  task.say(
    `${passed} of ${passed + failed} packings agree: ${steps} placements, ${machines} machines, ${unplaced} pods unplaced`,
  );
  return { passed, failed };
}

async function judgePack(task: Task, one: PackCase, tally: Tally): Promise<string[]> {
  const packing = packed(one);
  tally.steps += packing.steps.length;
  tally.machines += packing.machines.length;
  tally.unplaced += packing.unplaced.length;
  const steps = await judgedSteps(task, one, packing);
  const refused = packing.steps.flatMap(({ pod, node }, i) => {
    const plugins = steps[i] ?? ['nothing'];
    return plugins.length === 0 ? [] : [`${pod.name} on ${node} is refused by ${plugins.join()}`];
  });
  return [...refused, ...lost(one, packing)];
}

async function judgedSteps(
  { judge }: Task,
  one: PackCase,
  packing: Packing,
): Promise<readonly (readonly string[])[]> {
  const sources = new Map(one.pending.map((pod) => [pod.metadata.uid, pod]));
  const answer = await judge.ask({
    kind: 'place',
    cluster: one.cluster,
    arriving: planned(packing),
    placements: packing.steps.map(({ pod, node }) => ({ pod: sources.get(pod.uid), node })),
  });
  return (answer['steps'] ?? []) as readonly (readonly string[])[];
}

/** Every pod must come out once: placed, unplaced or skipped. */
function lost(one: PackCase, packing: Packing): string[] {
  const seen = new Map<string, number>();
  const note = (pod: ModelPod) => seen.set(pod.uid, (seen.get(pod.uid) ?? 0) + 1);
  for (const { pod } of [...packing.steps, ...packing.unplaced, ...packing.skipped]) note(pod);
  return one.pending
    .filter(({ metadata }) => seen.get(metadata.uid) !== 1)
    .map(({ metadata }) => `${metadata.name} comes out ${seen.get(metadata.uid) ?? 0} times`);
}
