// SPDX-License-Identifier: Apache-2.0
// Where a pod goes whose node is drained: the simulation must choose one of the nodes with the highest score of the
// scheduler's plugins.

import { simulateDrains, snapshotFromKubernetes } from '../../src/scheduling/index.ts';
import { randomScoreCase, type ScoreCase } from './generate/scores.ts';
import type { Cluster } from './objects.ts';
import type { Report, Task } from './replay-regressions.ts';

const CONCURRENCY = 4;
const MAX_PROBLEMS = 3;
/** Of the cases whose pod fits on several nodes, so many must have fewer best nodes than that. */
const MIN_DECIDED = 0.5;

interface Tally {
  next: number;
  passed: number;
  several: number;
  decided: number;
  readonly problems: string[];
}

export async function runScores(task: Task): Promise<Report> {
  const tally: Tally = { next: 0, passed: 0, several: 0, decided: 0, problems: [] };
  await Promise.all(Array.from({ length: CONCURRENCY }, () => work(task, tally)));
  for (const problem of tally.problems) task.log(`DISAGREEMENT in scores: ${problem}`);
  const { passed, several, decided, problems } = tally;
  task.log(
    `${passed} of ${passed + problems.length} choices by score agree: ${several} between several nodes, ${decided} by a different score`,
  );
  const isWeak = decided < several * MIN_DECIDED;
  if (isWeak) task.log('INSUFFICIENT COVERAGE: most nodes have equal scores');
  return { passed, failed: problems.length + (isWeak ? 1 : 0) };
}

async function work(task: Task, tally: Tally): Promise<void> {
  while (tally.next < task.scores && tally.problems.length < MAX_PROBLEMS) {
    const seed = task.seed + tally.next;
    tally.next += 1;
    const one = randomScoreCase(seed);
    const scores = await scoresOf(task, one);
    const most = Math.max(...scores.values());
    const best = [...scores].filter(([, score]) => score === most && score >= 0);
    const fitting = [...scores].filter(([, score]) => score >= 0);
    if (fitting.length > 1) tally.several += 1;
    if (fitting.length > best.length) tally.decided += 1;
    const chosen = choose(one);
    const agrees =
      chosen === undefined ? best.length === 0 : best.some(([name]) => name === chosen);
    if (agrees) tally.passed += 1;
    else
      tally.problems.push(
        `seed ${seed}: chose ${chosen}, scores ${JSON.stringify(Object.fromEntries(fitting))}, pod ${JSON.stringify(one.pod)}`,
      );
  }
}

/** By node; -1 where the pod does not fit. */
async function scoresOf(
  { oracle }: Task,
  { cluster, drained, pod, replicaSets }: ScoreCase,
): Promise<ReadonlyMap<string, number>> {
  const left: Cluster = {
    ...cluster,
    nodes: cluster.nodes.filter(({ metadata }) => metadata.name !== drained),
    pods: cluster.pods.filter(({ spec }) => spec.nodeName !== drained),
  };
  const request = { kind: 'score', cluster: left, pending: [pod], replicaSets };
  const { scores } = await oracle.request(request);
  const [of = []] = scores as readonly (readonly number[])[];
  return new Map(left.nodes.map(({ metadata }, index) => [metadata.name, of[index] ?? -1]));
}

function choose({ cluster, drained }: ScoreCase): string | undefined {
  const snapshot = snapshotFromKubernetes(cluster);
  if (!snapshot.ok) throw new Error(`invalid cluster: ${snapshot.problem}`);
  const options = { avoid: new Set<string>(), asScheduled: true };
  return simulateDrains(snapshot.value, options, (tryDrain) => tryDrain(drained)).moves[0]?.to;
}
