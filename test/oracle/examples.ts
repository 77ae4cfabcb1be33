// SPDX-License-Identifier: Apache-2.0
// One small case per feature in which that feature alone decides, with the oracle's verdict: a test of every
// feature that needs no Go.

import { sameVerdicts } from './coverage.ts';
import { without } from './features.ts';
import { randomCase } from './generate/case.ts';
import type { Case } from './objects.ts';
import { judged } from './oracle.ts';
import { writeRegression } from './regressions.ts';
import type { Task } from './replay.ts';
import { shrink } from './shrink.ts';

export async function writeExamples(task: Task): Promise<void> {
  for (const feature of task.features) {
    const found = await findExample(task, feature);
    if (found === undefined) {
      task.say(`no example of '${feature}' in ${task.cases} cases`);
      continue;
    }
    const smallest = await shrink(found, (candidate) => isDecisive(task, feature, candidate));
    const { rejections } = await judged(task.judge, smallest);
    const name = `feature-${feature.replaceAll(/[^A-Za-z]+/g, '-').toLowerCase()}`;
    const title = `'${feature}' alone decides`;
    task.say(`wrote ${writeRegression(name, { title, rejections, ...smallest })}`);
  }
}

async function findExample(task: Task, feature: string): Promise<Case | undefined> {
  for (let index = 0; index < task.cases; index += 1) {
    const one = randomCase(task.seed + index);
    if (await isDecisive(task, feature, one)) return one;
  }
  return undefined;
}

async function isDecisive({ judge }: Task, feature: string, one: Case): Promise<boolean> {
  const bare = without(feature, one);
  if (bare === undefined) return false;
  const [full, less] = await Promise.all([judged(judge, one), judged(judge, bare)]);
  return full.trouble.length === 0 && !sameVerdicts(full.rejections, less.rejections);
}
