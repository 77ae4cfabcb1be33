// SPDX-License-Identifier: Apache-2.0
// Measures the parts of the autoscaling loop that grow with the cluster.

import type { Benchmark } from '../benchmark.ts';
import { measureScaleDown, type ScaleDown, UTILIZATIONS } from './scale-down.ts';

interface Figures {
  /** A simulated drain of every node. */
  readonly scaleDownMs: readonly (ScaleDown & {
    /** How much longer it takes with four times as many nodes and candidates. */
    readonly growth: number;
  })[];
}

const FULL = { nodes: 1000, runs: 3 } as const;
const QUICK = { nodes: 50, runs: 1 } as const;
const GROWTH = 4;

export const loopBenchmark: Benchmark = ({ quick, say }) => {
  const { nodes, runs } = quick ? QUICK : FULL;
  const scaleDownMs = UTILIZATIONS.map((utilization) => {
    const one = measureScaleDown(nodes, utilization, runs);
    const larger = measureScaleDown(GROWTH * nodes, utilization, 1);
    say(
      `${utilization}: ${one.ms.toFixed(0)} ms, ${GROWTH} times the nodes: ${larger.ms.toFixed(0)} ms`,
    );
    return { ...one, growth: larger.cpuMs / one.cpuMs };
  });
  const figures: Figures = { scaleDownMs };
  return Promise.resolve({ figures, table: table(figures) });
};

function table({ scaleDownMs }: Figures): readonly string[] {
  return [
    'simulated drain of every node',
    ...scaleDownMs.map(
      ({ nodes, utilization, ms, cpuMs, possible, growth }) =>
        `  ${utilization.padEnd(12)}${nodes} nodes, ${possible} of them possible: ${ms.toFixed(0)} ms ` +
        `(${cpuMs.toFixed(0)} ms CPU), ${growth.toFixed(1)} times as long with ${GROWTH} times the nodes`,
    ),
  ];
}
