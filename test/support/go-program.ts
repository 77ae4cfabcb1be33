// SPDX-License-Identifier: Apache-2.0
// Builds a Go program of the repository once per state of its source.

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
  /** What to build, when it is a program of a required module; absent = the folder itself. */
  readonly target?: string;
  readonly linkerFlags?: string;
  /** Other versions of the same modules: a file beside go.mod that counts in its place; its sums are in the .sum beside it. */
  readonly modFile?: string;
  readonly say: (text: string) => void;
}

function findGo(): string {
  const usual = '/usr/local/go/bin/go';
  const go = ['go', usual].find((name) => spawnSync(name, ['version']).status === 0);
  if (go === undefined)
    throw new Error('Go is needed here: install Go 1.26 or newer (https://go.dev/dl)');
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

/** Throws with the operator's next step when it cannot be built. */
export function buildGoProgram(order: GoProgram): void {
  const { source, program, say, target = '.', linkerFlags = '', modFile } = order;
  const go = findGo();
  const stamp = `${program}.source`;
  const wanted = fingerprint(order, go);
  const isBuilt = existsSync(program) && existsSync(stamp);
  if (isBuilt && readFileSync(stamp, 'utf8') === wanted) return;
  say(`building ${basename(program)} with Go (minutes the first time)…`);
  const started = Date.now();
  mkdirSync(dirname(program), { recursive: true });
  // Built aside: a program that is still running somewhere keeps its file.
  const fresh = `${program}.new`;
  const modules = modFile === undefined ? [] : [`-modfile=${modFile}`];
  const flags = ['-trimpath', `-ldflags=${linkerFlags}`, ...modules];
  const args = ['build', ...flags, '-o', fresh, target];
  const build = spawnSync(go, args, {
    cwd: source,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, CGO_ENABLED: '0' },
  });
  if (build.status !== 0)
    throw new Error(
      `${basename(program)} did not build; the first time it needs the network to fetch Go modules`,
    );
  renameSync(fresh, program);
  writeFileSync(stamp, wanted);
  say(`built ${basename(program)} in ${Math.round((Date.now() - started) / 1000)} s`);
}
