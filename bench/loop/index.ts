// SPDX-License-Identifier: Apache-2.0
// Measures the autoscaling loop: from a watch event to the plan, and the parts that grow with the cluster.

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Benchmark, readNodeOptionsOfImage } from '../benchmark.ts';
import type { DecisionFigures, DecisionOptions } from './decision.ts';
import { type DrainOptions, type ScaleDown, UTILIZATIONS } from './scale-down.ts';

/** `growth`: how much more CPU time it takes than in the small cluster. */
type LargeFigures = DecisionFigures & { readonly growth: number };

interface Figures {
  /** From a watch event to the plan, in a full cluster. */
  readonly decisionMs: readonly DecisionFigures[];
  /** The same when every machine is a candidate for removal: every second one underutilized, and none. */
  readonly scaleDownMs: readonly DecisionFigures[];
  /** Of a process with 1,000 nodes and 100 pending pods. */
  readonly heapMiB: number;
  readonly rssMiB: number;
  /** In a cluster five times as large, with the ratio to the small one: 100 pending pods, and underutilized machines. */
  readonly large: LargeFigures;
  readonly largeScaleDown: LargeFigures;
  /** A simulated drain of every node. */
  readonly drainMs: readonly (ScaleDown & {
    /** How much longer it takes with four times as many nodes and candidates. */
    readonly growth: number;
  })[];
}

const FULL = { nodes: 1000, runs: 50, drains: 3, large: 5 } as const;
const QUICK = { nodes: 50, runs: 3, drains: 1, large: 2 } as const;
const GROWTH = 4;
const PENDING = [0, 100, 3000] as const;

export const loopBenchmark: Benchmark = async ({ quick, say }) => {
  const { nodes, runs, drains, large: times } = quick ? QUICK : FULL;
  const measure = async (options: DecisionOptions): Promise<DecisionFigures> => {
    const figures = await measureInProcess<DecisionFigures>(options);
    say(describe(figures));
    return figures;
  };
  const decisionMs: DecisionFigures[] = [];
  for (const pending of PENDING)
    decisionMs.push(
      await measure({ nodes, load: 'full', pending: quick ? pending / 50 : pending, runs }),
    );
  const scaleDownMs = [
    await measure({ nodes, load: 'half', pending: 0, runs }),
    await measure({ nodes, load: 'full', pending: 0, runs }),
  ];
  const measureLarge = async (small: DecisionFigures): Promise<LargeFigures> => {
    const { load, pending } = small;
    const large = await measure({ nodes: times * nodes, load, pending, runs });
    return { ...large, growth: large.cpuMs / small.cpuMs };
  };
  const [, small] = decisionMs;
  const [underutilized] = scaleDownMs;
  if (small === undefined || underutilized === undefined) throw new Error('nothing was measured');
  const large = await measureLarge(small);
  const largeScaleDown = await measureLarge(underutilized);
  const drainMs: Figures['drainMs'][number][] = [];
  for (const utilization of UTILIZATIONS) {
    const options = { utilization, runs: drains };
    const one = await measureInProcess<ScaleDown>({ ...options, nodes });
    const larger = await measureInProcess<ScaleDown>({ ...options, nodes: GROWTH * nodes });
    drainMs.push({ ...one, growth: larger.cpuMs / one.cpuMs });
  }
  const { heapMiB, rssMiB } = small;
  const memory = { heapMiB, rssMiB };
  const figures = { decisionMs, scaleDownMs, ...memory, large, largeScaleDown, drainMs };
  return { figures, table: table(figures) };
};

async function measureInProcess<T extends DecisionFigures | ScaleDown>(
  options: DecisionOptions | DrainOptions,
): Promise<T> {
  const args = [join(import.meta.dirname, 'process.ts'), JSON.stringify(options)];
  const env = { ...process.env, NODE_OPTIONS: readNodeOptionsOfImage() };
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  return JSON.parse(stdout) as T;
}

function describe(figures: DecisionFigures): string {
  const { nodes, pods, load, pending, p50Ms, p95Ms, cpuMs } = figures;
  const { steps, unneeded, heapMiB, rssMiB } = figures;
  return (
    `${nodes} nodes, ${pods} pods, ${load}, ${pending} pending: p50 ${p50Ms.toFixed(0)} ms, p95 ${p95Ms.toFixed(0)} ms, ` +
    `CPU ${cpuMs.toFixed(0)} ms, ${steps} steps, ${unneeded} unneeded, heap ${heapMiB} MiB, rss ${rssMiB} MiB`
  );
}

function table(figures: Figures): readonly string[] {
  const { decisionMs, scaleDownMs, large, largeScaleDown, drainMs } = figures;
  return [
    'from a watch event to the plan',
    ...[...decisionMs, ...scaleDownMs, large, largeScaleDown].map((one) => `  ${describe(one)}`),
    `  ${large.growth.toFixed(1)} times the CPU time in the largest cluster, ${largeScaleDown.growth.toFixed(1)} times with underutilized machines`,
    'simulated drain of every node',
    ...drainMs.map(
      ({ nodes, utilization, ms, cpuMs, possible, growth }) =>
        `  ${utilization.padEnd(12)}${nodes} nodes, ${possible} of them possible: ${ms.toFixed(0)} ms ` +
        `(${cpuMs.toFixed(0)} ms CPU), ${growth.toFixed(1)} times as long with ${GROWTH} times the nodes`,
    ),
  ];
}
