// SPDX-License-Identifier: Apache-2.0
import { hostname } from 'node:os';

const SIGNAL_EXIT_CODE = 130;

/** Unique per process start. */
export const PROCESS_NAME = `${hostname()}/${process.pid}`;

/** Aborts on the first SIGINT or SIGTERM; the second one ends the process at once. */
export function abortOnSignals(): AbortSignal {
  const abort = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      if (abort.signal.aborted) process.exit(SIGNAL_EXIT_CODE);
      abort.abort();
    });
  }
  return abort.signal;
}

/** Without a listener, SIGHUP ends the process. */
export function onHangUp(listener: () => void): void {
  process.on('SIGHUP', listener);
}

/** `pvescaler config schema | head` closes the output early. That is no error, and must not change the exit code. */
export function ignoreClosedPipes(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
}
