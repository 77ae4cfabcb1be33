// SPDX-License-Identifier: Apache-2.0
// Packs random pods onto random clusters and pools, and checks the result with the oracle.

import { checkPacking, type PackingCheck } from './check-packing.ts';
import { randomPackCase } from './generate/pools.ts';
import { readPackRegressions, writePackRegression } from './regressions.ts';
import type { Report, Task } from './replay-regressions.ts';
import { shrink } from './shrink.ts';

const CONCURRENCY = 4;
const MAX_PROBLEMS = 3;
/** With this many packings at least one DaemonSet pod must wait; otherwise the generator is too weak. */
const MIN_PACKINGS = 500;

interface Tally {
  next: number;
  passed: number;
  readonly failed: number[];
  readonly totals: Record<Exclude<keyof PackingCheck, 'problems'>, number>;
}

export async function runPackings(task: Task): Promise<Report> {
  const replayed = await replayPackings(task);
  const tally: Tally = {
    next: 0,
    passed: 0,
    failed: [],
    totals: { steps: 0, machines: 0, unplaced: 0, daemons: 0, late: 0, waiting: 0 },
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, () => work(task, tally)));
  for (const seed of tally.failed) await explain(task, seed);
  const { passed, failed, totals } = tally;
  task.log(
    `${passed} of ${passed + failed.length} packings agree: ${totals.steps} placements, ${totals.machines} machines, ${totals.unplaced} unplaced pods, ${totals.daemons} daemon pods, ${totals.late} late, ${totals.waiting} waiting`,
  );
  const hasNoWaitingPod = passed >= MIN_PACKINGS && totals.waiting === 0;
  if (hasNoWaitingPod) task.log('INSUFFICIENT COVERAGE: no DaemonSet pod had to wait');
  return {
    passed: replayed.passed + passed,
    failed: replayed.failed + failed.length + (hasNoWaitingPod ? 1 : 0),
  };
}

async function work(task: Task, tally: Tally): Promise<void> {
  while (tally.next < task.packings && tally.failed.length < MAX_PROBLEMS) {
    const seed = task.seed + tally.next;
    tally.next += 1;
    const { problems, ...totals } = await checkPacking(task.oracle, randomPackCase(seed));
    for (const key of Object.keys(totals) as (keyof typeof totals)[])
      tally.totals[key] += totals[key];
    if (problems.length === 0) tally.passed += 1;
    else tally.failed.push(seed);
    if (tally.next % 5000 === 0) task.log(`${tally.next} packings…`);
  }
}

async function replayPackings(task: Task): Promise<Report> {
  const all = readPackRegressions();
  let failed = 0;
  for (const { file, found } of all) {
    const { problems } = await checkPacking(task.oracle, found);
    if (problems.length === 0) continue;
    failed += 1;
    task.log(`${file}: ${problems.join('; ')}`);
  }
  return { passed: all.length - failed, failed };
}

async function explain(task: Task, seed: number): Promise<void> {
  const smallest = await shrink(randomPackCase(seed), async (candidate) => {
    try {
      return (await checkPacking(task.oracle, candidate)).problems.length > 0;
    } catch {
      return false; // the shrunk case is invalid
    }
  });
  const { problems } = await checkPacking(task.oracle, smallest);
  task.log(`DISAGREEMENT in packing (repeat: --seed ${seed} --cases 1): ${problems.join('; ')}`);
  task.log(JSON.stringify(smallest).slice(0, 8000));
  if (task.keep) task.log(`stored in ${writePackRegression(`pack-${seed}`, smallest)}`);
}
