// SPDX-License-Identifier: Apache-2.0
// How fast and how well pods are packed onto new machines, next to Karpenter on the same pods and sizes, in
// one run: machines differ from day to day, ratios do not.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Benchmark, type BenchmarkOptions, median } from '../benchmark.ts';
import { buildKarpenter, KARPENTER_VERSION, karpenterOnce } from './karpenter.ts';
import { packOnce, type Round } from './ours.ts';
import { buildOracle, refusedPlacements } from './verify.ts';
import { KINDS, type WorkloadName, workload } from './workload.ts';

interface Both {
  readonly ours: number;
  readonly karpenter: number;
}

interface Comparison {
  readonly workload: WorkloadName;
  readonly pods: number;
  readonly seconds: Both;
  /** How many times faster ours is. */
  readonly ratio: number;
  readonly nodes: Both;
  /** Cores bought. */
  readonly cpu: Both;
  /** Bytes bought. */
  readonly memory: Both;
  readonly unplaced: Both;
  /** Of ours, how many placements kube-scheduler's plugins refuse. */
  readonly refused: number;
}

interface Figures {
  readonly karpenter: string;
  readonly workloads: readonly Comparison[];
  /** Ours alone: time by number of pods. */
  readonly scale: readonly { readonly pods: number; readonly seconds: number }[];
}

const FULL = { pods: 10_000, rounds: 5, scale: [100, 1_000, 10_000, 50_000] } as const;
const QUICK = { pods: 500, rounds: 1, scale: [100, 500] } as const;

async function run(options: BenchmarkOptions): Promise<Figures> {
  buildKarpenter(options.say);
  buildOracle(options.say);
  const workloads: Comparison[] = [];
  for (const name of Object.keys(KINDS) as WorkloadName[])
    workloads.push(await compare(name, options));
  const { scale, rounds } = options.quick ? QUICK : FULL;
  return {
    karpenter: KARPENTER_VERSION,
    workloads,
    scale: scale.map((pods) => ({ pods, seconds: scaleTo(pods, rounds) })),
  };
}

function scaleTo(pods: number, rounds: number): number {
  const work = workload('diverse', pods);
  return median(Array.from({ length: rounds }, () => packOnce(work).round.seconds));
}

async function compare(name: WorkloadName, { quick, say }: BenchmarkOptions): Promise<Comparison> {
  const { pods, rounds } = quick ? QUICK : FULL;
  const work = workload(name, pods);
  const file = writeWorkload(name, work);
  const ours: Round[] = [];
  const karpenter: Round[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    ours.push(packOnce(work).round);
    karpenter.push(karpenterOnce(file));
    say(`${name}, round ${round} of ${rounds}: ${shown(ours)} against ${shown(karpenter)}`);
  }
  const refused = await refusedPlacements(work, packOnce(work).packing);
  const both = (measure: (rounds: readonly Round[]) => number): Both => ({
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
    refused,
  };
}

function writeWorkload(name: string, work: ReturnType<typeof workload>): string {
  const folder = join(import.meta.dirname, '..', '..', '.cache', 'bench');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${name.replaceAll(' ', '-')}-${work.pods.length}.json`);
  writeFileSync(file, JSON.stringify(work));
  return file;
}

function shown(rounds: readonly Round[]): string {
  return `${(rounds.at(-1)?.seconds ?? 0).toFixed(3)} s`;
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
    row('refused by kube-scheduler', one.refused, '-'),
    '',
  ]);
  const lines = scale.map(({ pods, seconds }) =>
    row(`${pods} pods`, seconds.toFixed(4), `${Math.round(pods / seconds)} pods/s`),
  );
  return [...rows, 'ours alone, diverse', ...lines];
}

function gib(bytes: number): string {
  return (bytes / 2 ** 30).toFixed(0);
}

function row(...[name, ...cells]: readonly (string | number)[]): string {
  return `  ${String(name).padEnd(28)}${cells.map((cell) => String(cell).padStart(14)).join('')}`;
}

export const schedulingBenchmark: Benchmark = async (options) => {
  const figures = await run(options);
  return { figures, table: table(figures) };
};
