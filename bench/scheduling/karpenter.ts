// SPDX-License-Identifier: Apache-2.0
// Runs the workload with Karpenter's scheduler in a separate Go program, several times in one process. Only its
// `Solve` is timed.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { buildGoProgram } from '../../test/support/go-program.ts';
import type { BenchmarkRun, PlannedCapacity } from './pack.ts';

const program = join(import.meta.dirname, '..', '..', '.cache', 'bench', 'karpenter');

export const KARPENTER_VERSION = 'v1.14.1';

export function buildKarpenter(log: (text: string) => void): void {
  buildGoProgram({ source: join(import.meta.dirname, 'karpenter'), program, log });
}

interface Response extends PlannedCapacity {
  readonly seconds: readonly number[];
  readonly cpuSeconds: readonly number[];
}

export interface Runs {
  readonly runs: number;
  /** Runs before them that are not counted. */
  readonly warmUp: number;
}

export function runKarpenter(
  workloadFile: string,
  { runs, warmUp }: Runs,
): readonly BenchmarkRun[] {
  const { status, stdout } = spawnSync(program, [workloadFile, `${warmUp + runs}`], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) throw new Error('Karpenter’s scheduler failed on the workload');
  const { seconds, cpuSeconds, ...planned } = JSON.parse(stdout) as Response;
  return seconds
    .map((one, run) => ({ ...planned, seconds: one, cpuSeconds: cpuSeconds[run] ?? Number.NaN }))
    .slice(warmUp);
}
