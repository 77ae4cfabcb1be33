// SPDX-License-Identifier: Apache-2.0
// Packs random pods onto random clusters and pools, and has the oracle judge the outcome.

import { randomPackCase } from './generate/pools.ts';
import { type JudgedPack, judgePack } from './judge-pack.ts';
import { readPackRegressions, writePackRegression } from './regressions.ts';
import type { Report, Task } from './replay.ts';
import { shrink } from './shrink.ts';

const AT_ONCE = 4;
const ENOUGH_PROBLEMS = 3;
/** In so many packings a DaemonSet's pod has met a refusal, or the generator has lost its bite. */
const ENOUGH_PACKINGS = 500;

interface Tally {
  next: number;
  passed: number;
  readonly failed: number[];
  readonly judged: Record<Exclude<keyof JudgedPack, 'problems'>, number>;
}

export async function runPacks(task: Task): Promise<Report> {
  const replayed = await replayPacks(task);
  const tally: Tally = {
    next: 0,
    passed: 0,
    failed: [],
    judged: { steps: 0, machines: 0, unplaced: 0, daemons: 0, late: 0, waiting: 0 },
  };
  await Promise.all(Array.from({ length: AT_ONCE }, () => work(task, tally)));
  for (const seed of tally.failed) await explain(task, seed);
  const { passed, failed, judged } = tally;
  task.say(
    `${passed} of ${passed + failed.length} packings agree: ${judged.steps} placements, ${judged.machines} machines, ${judged.unplaced} pods unplaced, ${judged.daemons} daemons, ${judged.late} late, ${judged.waiting} waiting`,
  );
  const isBlind = passed >= ENOUGH_PACKINGS && judged.waiting === 0;
  if (isBlind) task.say('NOT ENOUGH: no pod of a DaemonSet had to wait');
  return {
    passed: replayed.passed + passed,
    failed: replayed.failed + failed.length + (isBlind ? 1 : 0),
  };
}

async function work(task: Task, tally: Tally): Promise<void> {
  while (tally.next < task.packings && tally.failed.length < ENOUGH_PROBLEMS) {
    const seed = task.seed + tally.next;
    tally.next += 1;
    const { problems, ...judged } = await judgePack(task.judge, randomPackCase(seed));
    for (const key of Object.keys(judged) as (keyof typeof judged)[])
      tally.judged[key] += judged[key];
    if (problems.length === 0) tally.passed += 1;
    else tally.failed.push(seed);
    if (tally.next % 5000 === 0) task.say(`${tally.next} packings…`);
  }
}

async function replayPacks(task: Task): Promise<Report> {
  const all = readPackRegressions();
  let failed = 0;
  for (const { file, found } of all) {
    const { problems } = await judgePack(task.judge, found);
    if (problems.length === 0) continue;
    failed += 1;
    task.say(`${file}: ${problems.join('; ')}`);
  }
  return { passed: all.length - failed, failed };
}

async function explain(task: Task, seed: number): Promise<void> {
  const smallest = await shrink(randomPackCase(seed), async (candidate) => {
    try {
      return (await judgePack(task.judge, candidate)).problems.length > 0;
    } catch {
      return false; // taken apart too far
    }
  });
  const { problems } = await judgePack(task.judge, smallest);
  task.say(`DISAGREEMENT: in packing (repeat: --seed ${seed} --cases 1): ${problems.join('; ')}`);
  task.say(JSON.stringify(smallest).slice(0, 8000));
  if (task.keep) task.say(`kept in ${writePackRegression(`pack-${seed}`, smallest)}`);
}
