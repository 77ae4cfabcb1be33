// SPDX-License-Identifier: Apache-2.0
// Runs random cases concurrently: the oracle processes some while the simulation computes others.

import {
  type Difference,
  findDifferences,
  type Rejections,
  runOracle,
  runSimulation,
} from './compare.ts';
import { Coverage, haveSameFits } from './coverage.ts';
import { withoutFeature } from './features.ts';
import { randomCase } from './generate/case.ts';
import type { Case } from './objects.ts';
import { writeRegression } from './regressions.ts';
import type { Report, Task } from './replay-regressions.ts';
import { shrink } from './shrink.ts';

const CONCURRENCY = 8;
/** Features removed per case, in rotation. Each costs another request to the oracle. */
const SAMPLES = 2;
/** Stops after this many counterexamples. */
const MAX_PROBLEMS = 5;

interface Progress {
  readonly coverage: Coverage;
  readonly problems: number[];
  readonly errors: Set<string>;
  next: number;
  agreed: number;
}

export async function runCases(task: Task): Promise<Report> {
  const { cases, log } = task;
  const progress: Progress = {
    coverage: new Coverage(),
    problems: [],
    errors: new Set(),
    next: 0,
    agreed: 0,
  };
  const started = Date.now();
  await Promise.all(Array.from({ length: CONCURRENCY }, () => work(task, progress)));
  const seconds = (Date.now() - started) / 1000;
  for (const line of progress.coverage.report()) log(line);
  const gaps = progress.coverage.findGaps();
  for (const gap of gaps) log(`INSUFFICIENT COVERAGE: ${gap}`);
  log(`${progress.errors.size} kinds of scheduler errors occurred; they count as rejections`);
  for (const seed of progress.problems) await explain(task, seed);
  const done = progress.agreed + progress.problems.length;
  log(
    `${progress.agreed} of ${done} cases agree (${cases} requested), ${(done / seconds).toFixed(0)} cases/s, ${seconds.toFixed(0)} s`,
  );
  return { passed: progress.agreed, failed: progress.problems.length + gaps.length };
}

async function work(task: Task, progress: Progress): Promise<void> {
  while (progress.next < task.cases && progress.problems.length < MAX_PROBLEMS) {
    const index = progress.next;
    progress.next += 1;
    const seed = task.seed + index;
    const one = randomCase(seed);
    const { rejections, errors } = await runOracle(task.oracle, one);
    progress.coverage.addCase(rejections);
    for (const error of errors) progress.errors.add(error.replace(/ on .*/, ''));
    if (compareOne(one, rejections).length > 0) progress.problems.push(seed);
    else progress.agreed += 1;
    for (let i = 0; i < Math.min(SAMPLES, task.features.length); i += 1) {
      const feature = task.features[(index * SAMPLES + i) % task.features.length];
      if (feature !== undefined)
        progress.coverage.addSample(
          feature,
          await isDecisiveFor(task, { feature, one, rejections }),
        );
    }
    if ((index + 1) % 5000 === 0) task.log(`${index + 1} cases…`);
  }
}

interface Sample {
  readonly feature: string;
  readonly one: Case;
  readonly rejections: Rejections;
}

async function isDecisiveFor(task: Task, { feature, one, rejections }: Sample): Promise<boolean> {
  const edited = withoutFeature(feature, one);
  if (edited === undefined) return false;
  const without = await runOracle(task.oracle, edited);
  return !haveSameFits(rejections, without.rejections);
}

function compareOne(one: Case, rejections: Rejections): Difference[] {
  try {
    return findDifferences(one, rejections, runSimulation(one));
  } catch (error) {
    const ours = [error instanceof Error ? error.message : String(error)];
    return [{ pod: '', node: '', oracle: [], ours }];
  }
}

function describeFirst(found: readonly Difference[]): string {
  const plugins = found.flatMap(({ oracle, ours }) => [
    ...oracle.filter((name) => !ours.includes(name)).map((name) => `lacks a rejection by ${name}`),
    ...ours
      .filter((name) => !oracle.includes(name))
      .map((name) => `has a wrong rejection by ${name}`),
  ]);
  return plugins[0] ?? '';
}

async function explain(task: Task, seed: number): Promise<void> {
  const one = randomCase(seed);
  const first = compareOne(one, (await runOracle(task.oracle, one)).rejections);
  const problem = describeFirst(first);
  const smallest = await shrink(one, async (candidate) => {
    const { rejections } = await runOracle(task.oracle, candidate);
    return describeFirst(compareOne(candidate, rejections)) === problem;
  });
  const { rejections } = await runOracle(task.oracle, smallest);
  const found = compareOne(smallest, rejections);
  task.log(`DISAGREEMENT: the simulation ${problem} (repeat: --seed ${seed} --cases 1)`);
  task.log(JSON.stringify(found));
  task.log(JSON.stringify(smallest).slice(0, 8000));
  if (task.keep) {
    const name = `${problem.replaceAll(/[^A-Za-z]+/g, '-').toLowerCase()}-${seed}`;
    const title = `the simulation ${problem}`;
    task.log(`stored in ${writeRegression(name, { title, rejections, ...smallest })}`);
  }
}
