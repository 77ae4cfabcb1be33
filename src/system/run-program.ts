// SPDX-License-Identifier: Apache-2.0
import { type ChildProcess, spawn } from 'node:child_process';

export interface ProgramToRun {
  readonly command: string;
  readonly args: readonly string[];
  /** Beside what this process has, and before it. */
  readonly env: Readonly<Record<string, string>>;
  /** Ends it, and all that it started. */
  readonly signal: AbortSignal;
}

export interface ProgramEnd {
  /** Null: it was killed. */
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

/** Rejects when it cannot be started. Nobody answers its questions. */
export async function runProgram(program: ProgramToRun): Promise<ProgramEnd> {
  const { command, args, env, signal } = program;
  // In a group of its own: what it starts is ended with it.
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    env: { ...process.env, ...env },
  });
  const onAbort = () => killGroup(child);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await endOf(child);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function endOf(child: ChildProcess): Promise<ProgramEnd> {
  const parts = { output: '', errors: '' };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    parts.output += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    parts.errors += text;
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, ...parts }));
  });
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}
