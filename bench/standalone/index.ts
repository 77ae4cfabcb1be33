// SPDX-License-Identifier: Apache-2.0
// Compares mode standalone with the real Cluster Autoscaler in mode externalgrpc: the same workloads, one after the other.
import { basename } from 'node:path';
import { setup } from '../../test/e2e/controlplane/build.ts';
import { BINARIES, HOW_TO_RUN } from '../../test/e2e/support/autoscaler/real-autoscaler.ts';
import type { Benchmark } from '../benchmark.ts';
import { type Decider, type RunFigures, runWorkload } from './run.ts';
import { DELAYS, SPEED, STABILIZATION_WINDOW } from './settings.ts';
import { QUICK_WORKLOADS, WORKLOADS } from './workloads.ts';

interface Comparison {
  readonly workload: string;
  readonly clusterAutoscaler: RunFigures;
  readonly standalone: RunFigures;
}

export const standaloneBenchmark: Benchmark = async ({ quick, say }) => {
  const [binary] = BINARIES;
  if (binary === undefined) throw new Error(HOW_TO_RUN);
  setup();
  const workloads = quick ? QUICK_WORKLOADS : WORKLOADS;
  const comparisons: Comparison[] = [];
  for (const workload of workloads) {
    const run = async (name: string, decider: Decider): Promise<RunFigures> => {
      const figures = await runWorkload(workload, decider);
      say(`${workload.name}, ${name}: ${describe(figures)}`);
      return figures;
    };
    const clusterAutoscaler = await run(basename(binary), { clusterAutoscaler: binary });
    const standalone = await run('standalone', 'standalone');
    comparisons.push({ workload: workload.name, clusterAutoscaler, standalone });
  }
  const settings = { speed: SPEED, delays: DELAYS, stabilizationWindow: STABILIZATION_WINDOW };
  const figures = { clusterAutoscaler: basename(binary), settings, comparisons };
  return { figures, table: comparisons.flatMap(lines) };
};

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
