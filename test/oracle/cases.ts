// SPDX-License-Identifier: Apache-2.0
// Random cases, many at once: while the oracle judges some, the simulation answers others.

import { Coverage, sameVerdicts } from './coverage.ts';
import { without } from './features.ts';
import { randomCase } from './generate/case.ts';
import type { Case } from './objects.ts';
import { type Difference, differences, judged, type Rejections, simulated } from './oracle.ts';
import { writeRegression } from './regressions.ts';
import type { Report, Task } from './replay.ts';
import { shrink } from './shrink.ts';

const AT_ONCE = 8;
/** Features taken out per case, in turn; each costs another question to the oracle. */
const SAMPLES = 2;
/** After so many counterexamples the rest of the run tells nothing new. */
const ENOUGH_PROBLEMS = 5;

interface Progress {
  readonly coverage: Coverage;
  readonly problems: number[];
  readonly trouble: Set<string>;
  next: number;
  agreed: number;
}

export async function runCases(task: Task): Promise<Report> {
  const { cases, say } = task;
  const progress: Progress = {
    coverage: new Coverage(),
    problems: [],
    trouble: new Set(),
    next: 0,
    agreed: 0,
  };
  const started = Date.now();
  await Promise.all(Array.from({ length: AT_ONCE }, () => work(task, progress)));
  const seconds = (Date.now() - started) / 1000;
  for (const line of progress.coverage.lines()) say(line);
  const gaps = progress.coverage.shortcomings();
  for (const gap of gaps) say(`NOT ENOUGH: ${gap}`);
  say(`${progress.trouble.size} kinds of scheduler errors met; they count as refusals`);
  for (const seed of progress.problems) await explain(task, seed);
  const done = progress.agreed + progress.problems.length;
  say(
    `${progress.agreed} of ${done} cases agree (${cases} asked), ${(done / seconds).toFixed(0)} cases/s, ${seconds.toFixed(0)} s`,
  );
  return { passed: progress.agreed, failed: progress.problems.length + gaps.length };
}

async function work(task: Task, progress: Progress): Promise<void> {
  while (progress.next < task.cases && progress.problems.length < ENOUGH_PROBLEMS) {
    const index = progress.next;
    progress.next += 1;
    const seed = task.seed + index;
    const one = randomCase(seed);
    const { rejections, trouble } = await judged(task.judge, one);
    progress.coverage.addCase(rejections);
    for (const sentence of trouble) progress.trouble.add(sentence.replace(/ on .*/, ''));
    if (disagreements(one, rejections).length > 0) progress.problems.push(seed);
    else progress.agreed += 1;
    for (let i = 0; i < Math.min(SAMPLES, task.features.length); i += 1) {
      const feature = task.features[(index * SAMPLES + i) % task.features.length];
      if (feature !== undefined)
        progress.coverage.addSample(feature, await decides(task, { feature, one, rejections }));
    }
    if ((index + 1) % 5000 === 0) task.say(`${index + 1} cases…`);
  }
}

interface Sample {
  readonly feature: string;
  readonly one: Case;
  readonly rejections: Rejections;
}

async function decides(task: Task, { feature, one, rejections }: Sample): Promise<boolean> {
  const taken = without(feature, one);
  if (taken === undefined) return false;
  const bare = await judged(task.judge, taken);
  return !sameVerdicts(rejections, bare.rejections);
}

function disagreements(one: Case, rejections: Rejections): Difference[] {
  try {
    return differences(one, rejections, simulated(one));
  } catch (error) {
    const ours = [error instanceof Error ? error.message : String(error)];
    return [{ pod: '', node: '', oracle: [], ours }];
  }
}

function nature(found: readonly Difference[]): string {
  const plugins = found.flatMap(({ oracle, ours }) => [
    ...oracle.filter((name) => !ours.includes(name)).map((name) => `misses ${name}`),
    ...ours.filter((name) => !oracle.includes(name)).map((name) => `invents ${name}`),
  ]);
  return plugins[0] ?? '';
}

async function explain(task: Task, seed: number): Promise<void> {
  const one = randomCase(seed);
  const first = disagreements(one, (await judged(task.judge, one)).rejections);
  const problem = nature(first);
  const smallest = await shrink(one, async (candidate) => {
    const { rejections } = await judged(task.judge, candidate);
    return nature(disagreements(candidate, rejections)) === problem;
  });
  const { rejections } = await judged(task.judge, smallest);
  const found = disagreements(smallest, rejections);
  task.say(`DISAGREEMENT: the simulation ${problem} (repeat: --seed ${seed} --cases 1)`);
  task.say(JSON.stringify(found));
  task.say(JSON.stringify(smallest).slice(0, 8000));
  if (task.keep) {
    const name = `${problem.replaceAll(/[^A-Za-z]+/g, '-').toLowerCase()}-${seed}`;
    const title = `the simulation ${problem}`;
    task.say(`kept in ${writeRegression(name, { title, rejections, ...smallest })}`);
  }
}
