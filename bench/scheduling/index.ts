// SPDX-License-Identifier: Apache-2.0
// Measures how fast and how well pods are packed onto new machines, compared with Karpenter on the same pods
// and sizes in the same run: absolute times vary between machines, ratios do not.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Benchmark, type BenchmarkOptions, median } from '../benchmark.ts';
import { buildKarpenter, KARPENTER_VERSION, type Runs, runKarpenter } from './karpenter.ts';
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
  /** Wall time. */
  readonly seconds: Both;
  /** CPU time in all threads, which other load on the machine changes less. */
  readonly cpuSeconds: Both;
  /** The part of ours for reading the pods, which Karpenter's times do not include. */
  readonly readingCpuSeconds: number;
  /** How many times faster than Karpenter, by wall time and by CPU time. */
  readonly ratio: number;
  readonly cpuRatio: number;
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
}

interface Comparing extends Runs {
  readonly pods: number;
}

const FULL: readonly Comparing[] = [
  { pods: 100, runs: 9, warmUp: 3 },
  { pods: 1000, runs: 5, warmUp: 1 },
  { pods: 10_000, runs: 3, warmUp: 1 },
];
/** Runs of ours before the first measured one: Node compiles while it runs, unlike Go. */
const WARM_UP = 10;
/** Only the first workload and once, because Karpenter takes minutes: a warm-up would make no difference. */
const LARGEST: Comparing = { pods: 50_000, runs: 1, warmUp: 0 };
const QUICK: readonly Comparing[] = [
  { pods: 100, runs: 1, warmUp: 1 },
  { pods: 500, runs: 1, warmUp: 1 },
];

async function runAll({ quick, say }: BenchmarkOptions): Promise<Figures> {
  buildKarpenter(say);
  buildOracle(say);
  const workloads: Comparison[] = [];
  for (const name of Object.keys(KINDS) as WorkloadName[]) {
    const isFirst = workloads.length === 0;
    const all = quick ? QUICK : [...FULL, ...(isFirst ? [LARGEST] : [])];
    for (const comparing of all) {
      const found = await compare(name, comparing);
      workloads.push(found);
      say(
        `${name}, ${found.pods} pods: ${found.seconds.ours.toFixed(3)} s ` +
          `(Karpenter: ${found.seconds.karpenter.toFixed(3)} s)`,
      );
    }
  }
  return { karpenter: KARPENTER_VERSION, workloads };
}

async function compare(name: WorkloadName, { pods, runs, warmUp }: Comparing): Promise<Comparison> {
  const work = workload(name, pods);
  const { packing } = runPack(work);
  const before = warmUp > 0 ? WARM_UP : 1;
  for (let run = 1; run < before; run += 1) runPack(work);
  const ours = Array.from({ length: runs }, () => runPack(work).run);
  const karpenter = runKarpenter(writeWorkload(name, work), { runs, warmUp });
  const both = (measure: (run: BenchmarkRun) => number): Both => ({
    ours: median(ours.map(measure)),
    karpenter: median(karpenter.map(measure)),
  });
  const seconds = both((one) => one.seconds);
  const cpuSeconds = both((one) => one.cpuSeconds);
  return {
    workload: name,
    pods,
    seconds,
    cpuSeconds,
    readingCpuSeconds: median(ours.map((one) => one.readingCpuSeconds)),
    ratio: seconds.karpenter / seconds.ours,
    cpuRatio: cpuSeconds.karpenter / cpuSeconds.ours,
    nodes: both((one) => one.nodes),
    cpu: both((one) => one.cpuMilli / 1000),
    memory: both((one) => one.memoryBytes),
    unplaced: both((one) => one.unplaced),
    rejected: await countRejectedPlacements(work, packing),
  };
}

function writeWorkload(name: string, work: ReturnType<typeof workload>): string {
  const folder = join(import.meta.dirname, '..', '..', '.cache', 'bench');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${name.replaceAll(' ', '-')}-${work.pods.length}.json`);
  writeFileSync(file, JSON.stringify(work));
  return file;
}

function table({ karpenter, workloads }: Figures): readonly string[] {
  return workloads.flatMap((one) => [
    `${one.workload}, ${one.pods} pods: ${one.ratio.toFixed(1)} times as fast as Karpenter ${karpenter} ` +
      `(CPU time: ${one.cpuRatio.toFixed(1)} times)`,
    row('', 'ours', 'karpenter'),
    row('seconds', one.seconds.ours.toFixed(3), one.seconds.karpenter.toFixed(3)),
    row('CPU seconds', one.cpuSeconds.ours.toFixed(3), one.cpuSeconds.karpenter.toFixed(3)),
    row('CPU seconds of reading', one.readingCpuSeconds.toFixed(3), '-'),
    row('nodes', one.nodes.ours, one.nodes.karpenter),
    row('cpu', one.cpu.ours, one.cpu.karpenter),
    row('memory GiB', gib(one.memory.ours), gib(one.memory.karpenter)),
    row('unplaced', one.unplaced.ours, one.unplaced.karpenter),
    row('rejected by kube-scheduler', one.rejected, '-'),
    '',
  ]);
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
