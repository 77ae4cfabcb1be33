// SPDX-License-Identifier: Apache-2.0
// Runs the built CLI as a user does: in its own process, with real files, and with PATH as the only inherited variable.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export const root = join(import.meta.dirname, '../..');

/** Only ends a command that hangs: the machine may be loaded. */
export const COMMAND_TIMEOUT_MS = 240_000;

/** The built CLI, or the installed program that the variable PVESCALER names. */
export function commandLine(args: readonly string[]): readonly [string, readonly string[]] {
  const installed = process.env['PVESCALER'];
  if (installed !== undefined) return [installed, args];
  return [process.execPath, [join(root, 'bin/pvescaler.js'), ...args]];
}

export interface RunResult {
  readonly exitCode: number | null;
  readonly out: string;
  readonly err: string;
}

interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export function pvescaler(args: readonly string[], options: RunOptions = {}): RunResult {
  const [program, programArgs] = commandLine(args);
  const run = spawnSync(program, programArgs, {
    encoding: 'utf8',
    cwd: options.cwd ?? tmpdir(),
    env: { PATH: process.env['PATH'], HOME: '/nonexistent', ...options.env },
    timeout: COMMAND_TIMEOUT_MS,
  });
  return { exitCode: run.status, out: run.stdout, err: run.stderr };
}

/** An empty folder that is deleted when the test ends. */
export function aFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pvescaler-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
