// SPDX-License-Identifier: Apache-2.0
// Writes one small case per feature in which that feature alone decides, with the oracle's result. These test
// every feature without Go.

import { runOracle } from './compare.ts';
import { haveSameFits } from './coverage.ts';
import { withoutFeature } from './features.ts';
import { randomCase } from './generate/case.ts';
import type { Case } from './objects.ts';
import { writeRegression } from './regressions.ts';
import type { Task } from './replay-regressions.ts';
import { shrink } from './shrink.ts';

export async function writeExamples(task: Task): Promise<void> {
  for (const feature of task.features) {
    const found = await findExample(task, feature);
    if (found === undefined) {
      task.log(`no example of '${feature}' in ${task.cases} cases`);
      continue;
    }
    const smallest = await shrink(found, (candidate) => isDecisive(task, feature, candidate));
    const { rejections } = await runOracle(task.oracle, smallest);
    const name = `feature-${feature.replaceAll(/[^A-Za-z]+/g, '-').toLowerCase()}`;
    const title = `feature '${feature}' alone decides the result`;
    task.log(`wrote ${writeRegression(name, { title, rejections, ...smallest })}`);
  }
}

async function findExample(task: Task, feature: string): Promise<Case | undefined> {
  for (let index = 0; index < task.cases; index += 1) {
    const one = randomCase(task.seed + index);
    if (await isDecisive(task, feature, one)) return one;
  }
  return undefined;
}

async function isDecisive({ oracle }: Task, feature: string, one: Case): Promise<boolean> {
  const bare = withoutFeature(feature, one);
  if (bare === undefined) return false;
  const [full, less] = await Promise.all([runOracle(oracle, one), runOracle(oracle, bare)]);
  return full.errors.length === 0 && !haveSameFits(full.rejections, less.rejections);
}
