// SPDX-License-Identifier: Apache-2.0
// The composition root: the only file that knows the process and every adapter. Adapters are imported when
// a command asks for them, so that `--help` does not pay for SQLite or an HTTP client.
import { access, mkdir, readFile, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { dirname } from 'node:path';
import manifest from '../package.json' with { type: 'json' };
import { type CliContext, runCli } from './cli/index.ts';
import { StoreUnusable } from './ports/errors.ts';
import { systemClock, systemRandom } from './system/index.ts';

const SIGNAL_EXIT_CODE = 130;

/** The first signal asks for a graceful end; the second one does not ask. */
function endOnSignals(): AbortSignal {
  const abort = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      if (abort.signal.aborted) process.exit(SIGNAL_EXIT_CODE);
      abort.abort();
    });
  }
  return abort.signal;
}

/** `pvescaler config schema | head` closes our output early; that is no failure. */
function endQuietlyOnClosedPipe(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(0);
      throw error;
    });
  }
}

/** Turns one expected failure into an answer. */
function unless<T>(code: string, answer: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === code) return answer;
    throw error;
  };
}

function contextOfThisProcess(): CliContext {
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    environment: process.env,
    homeFolder: homedir(),
    tempFolders: [tmpdir()],
    files: {
      read: (path) => readFile(path, 'utf8').catch(unless('ENOENT', undefined)),
      async write(path, text, { overwrite }) {
        await mkdir(dirname(path), { recursive: true });
        return writeFile(path, text, { flag: overwrite ? 'w' : 'wx', mode: 0o600 }).then(
          () => 'written',
          unless('EEXIST', 'exists-already'),
        );
      },
    },
    clock: systemClock,
    random: systemRandom,
    signal: endOnSignals(),
    version: manifest.version,
    adapters: {
      async openStore(path) {
        const { fileSystemWarnings, openSqliteStore } = await import('./store/index.ts');
        await access(path).catch((cause: unknown) => {
          throw new StoreUnusable('STORE_UNREADABLE', `there is no state database at ${path}`, {
            cause,
          });
        });
        const store = await openSqliteStore({ path, clock: systemClock, random: systemRandom });
        return { store, warnings: await fileSystemWarnings(path) };
      },
    },
  };
}

export async function main(): Promise<void> {
  endQuietlyOnClosedPipe();
  process.exitCode = await runCli(process.argv.slice(2), contextOfThisProcess());
}
