// SPDX-License-Identifier: Apache-2.0
// Measures the autoscaling loop: from a watch event to the plan, and the parts that grow with the cluster.

import type { Benchmark } from '../benchmark.ts';
import { type DecisionFigures, type DecisionOptions, measureDecision } from './decision.ts';
import { measureScaleDown, type ScaleDown, UTILIZATIONS } from './scale-down.ts';

interface Figures {
  /** From a watch event to the plan, in a full cluster. */
  readonly decisionMs: readonly DecisionFigures[];
  /** The same when every machine is a candidate for removal: every second one underutilized, and none. */
  readonly scaleDownMs: readonly DecisionFigures[];
  /** In a cluster five times as large, with the ratio to the small one. */
  readonly large: DecisionFigures & { readonly growth: number };
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
    const figures = await measureDecision(options);
    say(describe(figures));
    return figures;
  };
  const decisionMs: DecisionFigures[] = [];
  for (const pending of PENDING)
    decisionMs.push(
      await measure({ nodes, load: 'full', pending: quick ? pending / 50 : pending, runs }),
    );
  const scaleDownMs = [
    await measure({ nodes, load: 'half', pending: 0, runs: Math.min(runs, 10) }),
    await measure({ nodes, load: 'full', pending: 0, runs: Math.min(runs, 10) }),
  ];
  const small = decisionMs[1];
  const large = await measure({
    nodes: times * nodes,
    load: 'full',
    pending: small?.pending ?? 0,
    runs: Math.min(runs, 10),
  });
  const drainMs = UTILIZATIONS.map((utilization) => {
    const one = measureScaleDown(nodes, utilization, drains);
    const larger = measureScaleDown(GROWTH * nodes, utilization, 1);
    return { ...one, growth: larger.cpuMs / one.cpuMs };
  });
  const growth = large.p95Ms / (small?.p95Ms ?? Number.NaN);
  const figures: Figures = { decisionMs, scaleDownMs, large: { ...large, growth }, drainMs };
  return { figures, table: table(figures) };
};

function describe(figures: DecisionFigures): string {
  const { nodes, pods, load, pending, p50Ms, p95Ms, steps, unneeded, heapMiB, rssMiB } = figures;
  return (
    `${nodes} nodes, ${pods} pods, ${load}, ${pending} pending: p50 ${p50Ms.toFixed(0)} ms, p95 ${p95Ms.toFixed(0)} ms, ` +
    `${steps} steps, ${unneeded} unneeded, heap ${heapMiB} MiB, rss ${rssMiB} MiB`
  );
}

function table({ decisionMs, scaleDownMs, large, drainMs }: Figures): readonly string[] {
  return [
    'from a watch event to the plan',
    ...[...decisionMs, ...scaleDownMs, large].map((figures) => `  ${describe(figures)}`),
    `  ${large.growth.toFixed(1)} times as long in the largest cluster`,
    'simulated drain of every node',
    ...drainMs.map(
      ({ nodes, utilization, ms, cpuMs, possible, growth }) =>
        `  ${utilization.padEnd(12)}${nodes} nodes, ${possible} of them possible: ${ms.toFixed(0)} ms ` +
        `(${cpuMs.toFixed(0)} ms CPU), ${growth.toFixed(1)} times as long with ${GROWTH} times the nodes`,
    ),
  ];
}
