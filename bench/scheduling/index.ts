// SPDX-License-Identifier: Apache-2.0
// Measures how fast and how well pods are packed onto new machines, compared with Karpenter on the same pods
// and sizes in the same run: absolute times vary between machines, ratios do not.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Benchmark, type BenchmarkOptions, median } from '../benchmark.ts';
import { buildKarpenter, KARPENTER_VERSION, runKarpenter } from './karpenter.ts';
import { type BenchmarkRun, runPack } from './pack.ts';
import { buildOracle, countRejectedPlacements } from './verify.ts';
import { KINDS, type WorkloadName, workload } from './workload.ts';

interface Both {
  readonly ours: number;
  readonly karpenter: number;
}

interface Comparison {
  readonly workload: WorkloadName;
  readonly pods: number;
  readonly seconds: Both;
  /** How many times faster than Karpenter. */
  readonly ratio: number;
  readonly nodes: Both;
  /** Planned cores. */
  readonly cpu: Both;
  /** Planned bytes. */
  readonly memory: Both;
  readonly unplaced: Both;
  /** How many of our placements kube-scheduler's plugins reject. */
  readonly rejected: number;
}

interface Figures {
  readonly karpenter: string;
  readonly workloads: readonly Comparison[];
  /** Our time by number of pods, without Karpenter. */
  readonly scale: readonly { readonly pods: number; readonly seconds: number }[];
}

const FULL = { pods: 10_000, runs: 5, scale: [100, 1_000, 10_000, 50_000] } as const;
const QUICK = { pods: 500, runs: 1, scale: [100, 500] } as const;

async function runAll(options: BenchmarkOptions): Promise<Figures> {
  buildKarpenter(options.say);
  buildOracle(options.say);
  const workloads: Comparison[] = [];
  for (const name of Object.keys(KINDS) as WorkloadName[])
    workloads.push(await compare(name, options));
  const { scale, runs } = options.quick ? QUICK : FULL;
  return {
    karpenter: KARPENTER_VERSION,
    workloads,
    scale: scale.map((pods) => ({ pods, seconds: scaleTo(pods, runs) })),
  };
}

function scaleTo(pods: number, runs: number): number {
  const work = workload('diverse', pods);
  return median(Array.from({ length: runs }, () => runPack(work).run.seconds));
}

async function compare(name: WorkloadName, { quick, say }: BenchmarkOptions): Promise<Comparison> {
  const { pods, runs } = quick ? QUICK : FULL;
  const work = workload(name, pods);
  const file = writeWorkload(name, work);
  const ours: BenchmarkRun[] = [];
  const karpenter: BenchmarkRun[] = [];
  for (let run = 1; run <= runs; run += 1) {
    ours.push(runPack(work).run);
    karpenter.push(runKarpenter(file));
    say(
      `${name}, run ${run} of ${runs}: ${formatLast(ours)} (Karpenter: ${formatLast(karpenter)})`,
    );
  }
  const rejected = await countRejectedPlacements(work, runPack(work).packing);
  const both = (measure: (runs: readonly BenchmarkRun[]) => number): Both => ({
    ours: measure(ours),
    karpenter: measure(karpenter),
  });
  const seconds = both((all) => median(all.map((one) => one.seconds)));
  return {
    workload: name,
    pods,
    seconds,
    ratio: seconds.karpenter / seconds.ours,
    nodes: both((all) => median(all.map((one) => one.nodes))),
    cpu: both((all) => median(all.map((one) => one.cpuMilli)) / 1000),
    memory: both((all) => median(all.map((one) => one.memoryBytes))),
    unplaced: both((all) => Math.max(...all.map((one) => one.unplaced))),
    rejected,
  };
}

function writeWorkload(name: string, work: ReturnType<typeof workload>): string {
  const folder = join(import.meta.dirname, '..', '..', '.cache', 'bench');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${name.replaceAll(' ', '-')}-${work.pods.length}.json`);
  writeFileSync(file, JSON.stringify(work));
  return file;
}

function formatLast(runs: readonly BenchmarkRun[]): string {
  return `${(runs.at(-1)?.seconds ?? 0).toFixed(3)} s`;
}

function table({ karpenter, workloads, scale }: Figures): readonly string[] {
  const rows = workloads.flatMap((one) => [
    `${one.workload}, ${one.pods} pods: ${one.ratio.toFixed(1)} times as fast as Karpenter ${karpenter}`,
    row('', 'ours', 'karpenter'),
    row('seconds', one.seconds.ours.toFixed(3), one.seconds.karpenter.toFixed(3)),
    row('nodes', one.nodes.ours, one.nodes.karpenter),
    row('cpu', one.cpu.ours, one.cpu.karpenter),
    row('memory GiB', gib(one.memory.ours), gib(one.memory.karpenter)),
    row('unplaced', one.unplaced.ours, one.unplaced.karpenter),
    row('rejected by kube-scheduler', one.rejected, '-'),
    '',
  ]);
  const lines = scale.map(({ pods, seconds }) =>
    row(`${pods} pods`, seconds.toFixed(4), `${Math.round(pods / seconds)} pods/s`),
  );
  return [...rows, 'pvescaler only, diverse workload', ...lines];
}

function gib(bytes: number): string {
  return (bytes / 2 ** 30).toFixed(0);
}

function row(...[name, ...cells]: readonly (string | number)[]): string {
  return `  ${String(name).padEnd(28)}${cells.map((cell) => String(cell).padStart(14)).join('')}`;
}

export const schedulingBenchmark: Benchmark = async (options) => {
  const figures = await runAll(options);
  return { figures, table: table(figures) };
};
