// SPDX-License-Identifier: Apache-2.0
// Compares mode standalone with the real Cluster Autoscaler in mode externalgrpc: the same workloads, one after the other.
import { basename } from 'node:path';
import { setup } from '../../test/e2e/controlplane/build.ts';
import { BINARIES, HOW_TO_RUN } from '../../test/e2e/support/autoscaler/real-autoscaler.ts';
import { type Benchmark, median } from '../benchmark.ts';
import { type Decider, type RunFigures, runWorkload } from './run.ts';
import { DELAYS, SPEED, STABILIZATION_WINDOW } from './settings.ts';
import { QUICK_WORKLOADS, WORKLOADS } from './workloads.ts';

interface Comparison {
  readonly workload: string;
  /** The median of each figure. */
  readonly clusterAutoscaler: RunFigures;
  readonly standalone: RunFigures;
  readonly runs: readonly Run[];
}

type Run = Pick<Comparison, 'clusterAutoscaler' | 'standalone'>;

/** Runs of one workload differ by seconds and machines. */
const RUNS = 3;

export const standaloneBenchmark: Benchmark = async ({ quick, say }) => {
  const [binary] = BINARIES;
  if (binary === undefined) throw new Error(HOW_TO_RUN);
  setup();
  const workloads = quick ? QUICK_WORKLOADS : WORKLOADS;
  const comparisons: Comparison[] = [];
  for (const workload of workloads) {
    const measure = async (name: string, decider: Decider): Promise<RunFigures> => {
      const figures = await runWorkload(workload, decider);
      say(`${workload.name}, ${name}: ${describe(figures)}`);
      return figures;
    };
    const runs: Run[] = [];
    while (runs.length < (quick ? 1 : RUNS)) {
      const clusterAutoscaler = await measure(basename(binary), { clusterAutoscaler: binary });
      runs.push({ clusterAutoscaler, standalone: await measure('standalone', 'standalone') });
    }
    comparisons.push({
      workload: workload.name,
      clusterAutoscaler: medians(runs.map((run) => run.clusterAutoscaler)),
      standalone: medians(runs.map((run) => run.standalone)),
      runs,
    });
  }
  const settings = { speed: SPEED, delays: DELAYS, stabilizationWindow: STABILIZATION_WINDOW };
  const figures = { clusterAutoscaler: basename(binary), settings, comparisons };
  return { figures, table: comparisons.flatMap(lines) };
};

function medians(all: readonly RunFigures[]): RunFigures {
  const of = (name: keyof RunFigures) => median(all.map((figures) => figures[name]));
  return {
    pods: of('pods'),
    medianSeconds: of('medianSeconds'),
    p95Seconds: of('p95Seconds'),
    machines: of('machines'),
    machineHours: of('machineHours'),
    cpuHours: of('cpuHours'),
    seconds: of('seconds'),
  };
}

function describe(figures: RunFigures): string {
  const { pods, medianSeconds, p95Seconds, machines, machineHours, cpuHours, seconds } = figures;
  return (
    `${pods} pods bound after ${medianSeconds.toFixed(1)} s (median), ${p95Seconds.toFixed(1)} s (p95); ` +
    `${machines} machines, ${machineHours.toFixed(2)} machine-hours, ${cpuHours.toFixed(2)} CPU-hours; ${seconds.toFixed(0)} s in all`
  );
}

function lines({ workload, clusterAutoscaler, standalone }: Comparison): readonly string[] {
  return [
    workload,
    `  Cluster Autoscaler  ${describe(clusterAutoscaler)}`,
    `  standalone          ${describe(standalone)}`,
  ];
}
