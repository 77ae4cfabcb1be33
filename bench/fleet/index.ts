// SPDX-License-Identifier: Apache-2.0
// Measures how well the engine uses a site: time, requests and memory. Virtual time and the simulator's durations,
// except for the memory of the idle process.
import type { Benchmark, BenchmarkOptions } from '../benchmark.ts';
import { type Creation, measureCreation } from './creation.ts';
import { type HeapGrowth, measureHeap } from './heap.ts';
import { measureIdle } from './idle.ts';
import { measurePassCost, type PassCost } from './pass-cost.ts';
import { measureSteady, type Steady } from './steady.ts';

interface Figures extends Creation, HeapGrowth {
  readonly steadyRequestsPerMinute: readonly Steady[];
  /** CPU time of a pass over joined machines at rest. */
  readonly passCpuMs: readonly PassCost[];
  readonly idleRssMiB: number;
}

const FULL = {
  machines: 100,
  hosts: 10,
  steady: [10, 100, 1_000],
  minutes: 20,
  heap: { days: 7, warmUpScalings: 120 },
  passCost: [100, 1_000, 5_000],
  idleSeconds: 60,
} as const;
const QUICK = {
  machines: 10,
  hosts: 2,
  steady: [5, 20],
  minutes: 5,
  heap: { days: 1, warmUpScalings: 2 },
  passCost: [100],
  idleSeconds: 5,
} as const;

async function run({ quick, say }: BenchmarkOptions): Promise<Figures> {
  const { machines, hosts, steady, minutes, heap, passCost, idleSeconds } = quick ? QUICK : FULL;
  say(`${machines} machines on ${hosts} hosts`);
  const creation = await measureCreation(machines, hosts);
  const steadyRequestsPerMinute: Steady[] = [];
  for (const count of steady) {
    say(`${count} idle machines`);
    steadyRequestsPerMinute.push(await measureSteady(count, minutes));
  }
  const passCpuMs: PassCost[] = [];
  for (const count of passCost) {
    say(`passes over ${count} idle joined machines`);
    passCpuMs.push(await measurePassCost(count));
  }
  say(`an idle process for ${idleSeconds} s`);
  const idleRssMiB = await measureIdle(idleSeconds);
  say(`${heap.days} virtual days`);
  return {
    ...creation,
    steadyRequestsPerMinute,
    passCpuMs,
    idleRssMiB,
    ...(await measureHeap(heap)),
  };
}

function table(figures: Figures): readonly string[] {
  const { machines, hosts, wallSeconds, leastSeconds } = figures;
  return [
    row('overCriticalPath', figures.overCriticalPath.toFixed(3)),
    `    ${machines} machines on ${hosts} hosts in ${wallSeconds.toFixed(1)} s; the minimum of the site is ${leastSeconds.toFixed(1)} s`,
    row('requestsPerMachine', figures.requestsPerMachine.toFixed(1)),
    'steadyRequestsPerMinute',
    ...figures.steadyRequestsPerMinute.map((one) =>
      row(`  ${one.machines} machines`, one.requestsPerMinute.toFixed(2)),
    ),
    'passCpuMs',
    ...figures.passCpuMs.map((one) => row(`  ${one.machines} machines`, one.passCpuMs.toFixed(1))),
    row('idleRssMiB', figures.idleRssMiB.toFixed(0)),
    row('heapGrowthMiB', figures.heapGrowthMiB.toFixed(2)),
    `    over ${figures.days} virtual days with ${figures.scalings} scalings`,
  ];
}

function row(name: string, value: string): string {
  return `${name.padEnd(28)}${value.padStart(12)}`;
}

export const fleetBenchmark: Benchmark = async (options) => {
  const figures = await run(options);
  return { figures, table: table(figures) };
};
