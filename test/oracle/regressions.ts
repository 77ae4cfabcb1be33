// SPDX-License-Identifier: Apache-2.0
// Shrunk counterexamples of the past. Those of single verdicts carry the oracle's, so that they can be
// replayed without it; a packing may change and stay right, so it is judged anew.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PackCase } from './generate/pools.ts';
import type { Case } from './objects.ts';
import type { Rejections } from './oracle.ts';

export interface Regression extends Case {
  /** What went wrong once, in a few words. */
  readonly title: string;
  readonly rejections: Rejections;
}

interface Stored<T> {
  readonly file: string;
  readonly found: T;
}

const verdicts = join(import.meta.dirname, 'regressions');
const packings = join(verdicts, 'packings');

function read<T>(folder: string): readonly Stored<T>[] {
  mkdirSync(folder, { recursive: true });
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => ({ file, found: JSON.parse(readFileSync(join(folder, file), 'utf8')) as T }));
}

function write(folder: string, name: string, found: object): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${name}.json`);
  writeFileSync(path, `${JSON.stringify(found, null, 2)}\n`);
  return path;
}

export function readRegressions(): readonly Stored<Regression>[] {
  return read(verdicts);
}

export function readPackRegressions(): readonly Stored<PackCase>[] {
  return read(packings);
}

/** Returns the file's path. */
export function writeRegression(name: string, regression: Regression): string {
  return write(verdicts, name, regression);
}

/** Returns the file's path. */
export function writePackRegression(name: string, found: PackCase): string {
  return write(packings, name, found);
}
