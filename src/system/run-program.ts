// SPDX-License-Identifier: Apache-2.0
import { type ChildProcess, spawn } from 'node:child_process';

interface Program {
  readonly command: string;
  readonly args: readonly string[];
  /** Added to the environment of this process; takes precedence. */
  readonly env: Readonly<Record<string, string>>;
  /** Kills the program and its child processes. */
  readonly signal: AbortSignal;
}

interface ProgramResult {
  /** Null: killed by a signal. */
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

/** Rejects when the program cannot be started. The program has no stdin. */
export async function runProgram(program: Program): Promise<ProgramResult> {
  const { command, args, env, signal } = program;
  // In its own process group, so that its child processes can be killed with it.
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    env: { ...process.env, ...env },
  });
  const onAbort = () => killGroup(child);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await waitForExit(child);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function waitForExit(child: ChildProcess): Promise<ProgramResult> {
  const streams = { output: '', errors: '' };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    streams.output += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    streams.errors += text;
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, ...streams }));
  });
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // It has already exited.
  }
}
