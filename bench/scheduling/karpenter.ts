// SPDX-License-Identifier: Apache-2.0
// Runs the workload with Karpenter's scheduler in a separate Go program. Only its `Solve` is timed.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { buildGoProgram } from '../../test/support/go-program.ts';
import type { BenchmarkRun } from './pack.ts';

const program = join(import.meta.dirname, '..', '..', '.cache', 'bench', 'karpenter');

export const KARPENTER_VERSION = 'v1.14.1';

export function buildKarpenter(log: (text: string) => void): void {
  buildGoProgram({ source: join(import.meta.dirname, 'karpenter'), program, log });
}

export function runKarpenter(workloadFile: string): BenchmarkRun {
  const { status, stdout } = spawnSync(program, [workloadFile, '1'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) throw new Error('Karpenter’s scheduler failed on the workload');
  const { seconds, ...bought } = JSON.parse(stdout) as Omit<BenchmarkRun, 'seconds'> & {
    readonly seconds: readonly number[];
  };
  return { ...bought, seconds: seconds[0] ?? Number.NaN };
}
