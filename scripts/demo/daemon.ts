// SPDX-License-Identifier: Apache-2.0
// `pvescaler serve` as a process of the demo.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/system/index.ts';

const ROOT = join(import.meta.dirname, '../..');
const LOG_TAIL_LINES = 30;
/** The state is thrown away, so nothing is lost when the daemon is killed. */
const STOP_GRACE_MS = 3_000;

export interface Daemon {
  /** Rejects when the daemon ends although it was not stopped. */
  readonly failed: Promise<never>;
  readLogTail(): string;
  stop(): Promise<void>;
}

/** `folder` contains config.yaml, and is removed with the daemon when this process is killed. */
export function startDaemon(folder: string): Daemon {
  const logFile = join(folder, 'serve.log');
  const log = createWriteStream(logFile);
  const child: ChildProcess = spawn(
    process.execPath,
    [
      `--import=${join(import.meta.dirname, 'end-with-parent.mjs')}`,
      join(ROOT, 'bin/pvescaler.js'),
      'serve',
      `--config=${join(folder, 'config.yaml')}`,
    ],
    {
      stdio: ['pipe', 'pipe', 'pipe'],
      // A group of its own: Ctrl-C in a terminal reaches only the demo, which then stops the daemon.
      detached: true,
      env: {
        PATH: process.env['PATH'],
        HOME: '/nonexistent',
        DEMO_FOLDER: folder,
      },
    },
  );
  child.stdout?.pipe(log, { end: false });
  child.stderr?.pipe(log, { end: false });
  const ended = once(child, 'exit');
  let isStopped = false;
  const failed = (async () => {
    const [code] = (await ended) as [number | null];
    if (isStopped) return new Promise<never>(() => undefined);
    throw new Error(`pvescaler serve ended with code ${code}`);
  })();
  // Reported by whatever waits for it; without a waiter it is not unhandled.
  failed.catch(() => undefined);
  return {
    failed,
    readLogTail: () =>
      existsSync(logFile)
        ? readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n')
        : '',
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
      log.end();
    },
  };
}
