// SPDX-License-Identifier: Apache-2.0
// `pvescaler serve` as a process of the demo.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/system/index.ts';

const ROOT = join(import.meta.dirname, '../..');
const LOG_TAIL_LINES = 30;
/** The state is thrown away, so nothing is lost when the daemon is killed. */
const STOP_GRACE_MS = 3_000;
const START_TIMEOUT_MS = 60_000;
const POLL_MS = 50;

export interface Daemon {
  /** Resolves when all of its ports are open: false if another process has one of them. */
  waitForPorts(): Promise<boolean>;
  /** Rejects when the daemon ends although it was not stopped. */
  readonly failed: Promise<never>;
  readLogTail(): string;
  stop(): Promise<void>;
}

/** `folder` contains config.yaml, and is removed with the daemon when this process is killed. */
export function startDaemon(folder: string): Daemon {
  const logFile = join(folder, 'serve.log');
  const log = openSync(logFile, 'w');
  const child = spawnDaemon(folder, log);
  closeSync(log);
  const ended = once(child, 'exit');
  let isStopped = false;
  let isEnded = false;
  const failed = (async () => {
    const [code] = (await ended) as [number | null];
    isEnded = true;
    if (isStopped) return new Promise<never>(() => undefined);
    throw new Error(`pvescaler serve ended with code ${code}`);
  })();
  // Reported by whatever waits for it; without a waiter it is not unhandled.
  failed.catch(() => undefined);
  const readLog = () => readFileSync(logFile, 'utf8');
  return {
    waitForPorts: async () => {
      const deadline = systemClock.monotonic() + START_TIMEOUT_MS;
      while (systemClock.monotonic() < deadline) {
        const text = readLog();
        if (text.includes('EADDRINUSE')) return false;
        // Logged after the dashboard, when the front end listens.
        if (text.includes('"message":"serving ')) return true;
        if (!isEnded) await systemClock.sleep(POLL_MS);
        else if (!readLog().includes('EADDRINUSE')) await failed;
      }
      throw new Error(`pvescaler serve does not listen after ${START_TIMEOUT_MS / 1_000} s`);
    },
    failed,
    readLogTail: () => readLog().trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n'),
    stop: async () => {
      isStopped = true;
      child.kill('SIGTERM');
      const timeout = new AbortController();
      const kill = systemClock.sleep(STOP_GRACE_MS, { signal: timeout.signal }).then(
        () => child.kill('SIGKILL'),
        () => undefined,
      );
      await ended;
      timeout.abort();
      await kill;
    },
  };
}

function spawnDaemon(folder: string, log: number): ChildProcess {
  return spawn(
    process.execPath,
    [
      `--import=${join(import.meta.dirname, 'end-with-parent.mjs')}`,
      join(ROOT, 'bin/pvescaler.js'),
      'serve',
      `--config=${join(folder, 'config.yaml')}`,
    ],
    {
      stdio: ['pipe', log, log],
      // A group of its own: Ctrl-C in a terminal reaches only the demo, which then stops the daemon.
      detached: true,
      env: {
        PATH: process.env['PATH'],
        HOME: '/nonexistent',
        DEMO_FOLDER: folder,
        TMPDIR: process.env['TMPDIR'],
        // Its cache of compiled code would stay in the folder for temporary files.
        NODE_DISABLE_COMPILE_CACHE: '1',
      },
    },
  );
}
