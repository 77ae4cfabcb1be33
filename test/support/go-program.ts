// SPDX-License-Identifier: Apache-2.0
// Builds a Go program of the repository when its source has changed.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';

export interface GoProgram {
  /** Folder with go.mod. */
  readonly source: string;
  /** Path of the program. */
  readonly program: string;
  /** Package to build when it is in a required module; absent: the folder itself. */
  readonly target?: string;
  readonly linkerFlags?: string;
  /** File beside go.mod that replaces it, for other versions of the same modules; its sums are in the .sum file beside it. */
  readonly modFile?: string;
  readonly log: (text: string) => void;
}

function findGo(): string {
  const defaultPath = '/usr/local/go/bin/go';
  const go = ['go', defaultPath].find((name) => spawnSync(name, ['version']).status === 0);
  if (go === undefined)
    throw new Error('Go is not installed: install Go 1.26 or newer (https://go.dev/dl)');
  return go;
}

function fingerprint(order: GoProgram, go: string): string {
  const { source, target, linkerFlags = '', modFile } = order;
  const hash = createHash('sha256').update(spawnSync(go, ['version']).stdout);
  if (modFile !== undefined) hash.update(`${modFile}\n`);
  if (target !== undefined) hash.update(`${target} ${linkerFlags}\n`);
  for (const file of readdirSync(source).sort())
    hash.update(`${file}\n`).update(readFileSync(join(source, file)));
  return hash.digest('hex');
}

/** Modules come from the network the first time, which may fail for a moment. */
const MAX_ATTEMPTS = 3;

/** The result of the first attempt that succeeds, else of the last. */
function retry<T extends { readonly status: number | null }>(attempt: () => T): T {
  let result = attempt();
  for (let count = 1; result.status !== 0 && count < MAX_ATTEMPTS; count += 1) result = attempt();
  return result;
}

/** The folder of a module in Go's cache, which is filled if necessary. Throws unless its content has this sum. */
export function downloadGoModule(module: string, sum: string): string {
  const go = findGo();
  const { stdout } = retry(() =>
    spawnSync(go, ['mod', 'download', '-json', module], { encoding: 'utf8' }),
  );
  const { Dir, Sum, Error: problem } = JSON.parse(stdout);
  if (problem !== undefined)
    throw new Error(`${problem}; the first download of ${module} needs the network`);
  if (Sum !== sum) throw new Error(`${module} has the sum ${Sum}, not ${sum}`);
  return Dir;
}

/** Throws when the build fails, with what to do next. */
export function buildGoProgram(order: GoProgram): void {
  const { source, program, log, target = '.', linkerFlags = '', modFile } = order;
  const go = findGo();
  const stamp = `${program}.source`;
  const sourceHash = fingerprint(order, go);
  const isBuilt = existsSync(program) && existsSync(stamp);
  if (isBuilt && readFileSync(stamp, 'utf8') === sourceHash) return;
  log(`building ${basename(program)} with Go (minutes the first time)…`);
  const started = Date.now();
  mkdirSync(dirname(program), { recursive: true });
  // Built under another name: the file of a running program cannot be replaced in place.
  const fresh = `${program}.new`;
  const modules = modFile === undefined ? [] : [`-modfile=${modFile}`];
  const flags = ['-trimpath', `-ldflags=${linkerFlags}`, ...modules];
  const args = ['build', ...flags, '-o', fresh, target];
  const build = retry(() =>
    spawnSync(go, args, {
      cwd: source,
      // Not to stdout, which may be reserved for figures.
      stdio: ['ignore', 2, 2],
      env: { ...process.env, CGO_ENABLED: '0' },
    }),
  );
  if (build.status !== 0)
    throw new Error(
      `building ${basename(program)} failed; the first build needs the network to fetch Go modules`,
    );
  renameSync(fresh, program);
  writeFileSync(stamp, sourceHash);
  log(`built ${basename(program)} in ${Math.round((Date.now() - started) / 1000)} s`);
}
