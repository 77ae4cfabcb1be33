// SPDX-License-Identifier: Apache-2.0
// npm starts the demo through a shell and scripts/ensure.mjs. A signal that ends npm may not reach the demo, which would
// then go on without a terminal and keep its ports. So the demo watches these processes.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const POLL_MS = 500;
const MAX_LEVELS = 4;

/** Calls once when npm, or a process between npm and this one, has ended. Does nothing if npm did not start this process. */
export function watchLauncher(onGone: () => void): void {
  if (process.env['npm_lifecycle_event'] !== 'demo') return;
  const pids = findLaunchers();
  const timer = setInterval(() => {
    if (pids.every(isAlive)) return;
    clearInterval(timer);
    onGone();
  }, POLL_MS);
  timer.unref();
}

/** From the parent up to npm; the parent only if npm is not found. */
function findLaunchers(): readonly number[] {
  const pids: number[] = [];
  for (let pid = process.ppid; pid > 1 && pids.length < MAX_LEVELS; ) {
    const found = readProcess(pid);
    if (found === undefined) break;
    pids.push(pid);
    if (/\bnpm\b/.test(found.command)) return pids;
    pid = found.parent;
  }
  return [process.ppid];
}

interface RunningProcess {
  readonly parent: number;
  readonly command: string;
}

function readProcess(pid: number): RunningProcess | undefined {
  if (process.platform !== 'linux') return readWithPs(pid);
  try {
    // The name of the program is in parentheses and may contain others; after it follow state and parent.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1) ?? '';
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    return { parent: Number(stat.split(' ')[1]), command };
  } catch {
    return undefined;
  }
}

function readWithPs(pid: number): RunningProcess | undefined {
  const { status, stdout } = spawnSync('ps', ['-o', 'ppid=,args=', '-p', String(pid)], {
    encoding: 'utf8',
  });
  const [, parent, command] = /^\s*(\d+)\s+(.*)/.exec(stdout ?? '') ?? [];
  if (status !== 0 || command === undefined) return undefined;
  return { parent: Number(parent), command };
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
