// SPDX-License-Identifier: Apache-2.0
// The same workload through Karpenter's scheduler, in a Go program of its own; only its `Solve` is timed.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { buildGoProgram } from '../../test/support/go-program.ts';
import type { Round } from './ours.ts';

const program = join(import.meta.dirname, '..', '..', '.cache', 'bench', 'karpenter');

export const KARPENTER_VERSION = 'v1.14.1';

export function buildKarpenter(say: (text: string) => void): void {
  buildGoProgram({ source: join(import.meta.dirname, 'karpenter'), program, say });
}

export function karpenterOnce(workloadFile: string): Round {
  const { status, stdout } = spawnSync(program, [workloadFile, '1'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) throw new Error('Karpenter’s scheduler did not get through the workload');
  const { seconds, ...bought } = JSON.parse(stdout) as Omit<Round, 'seconds'> & {
    readonly seconds: readonly number[];
  };
  return { ...bought, seconds: seconds[0] ?? Number.NaN };
}
