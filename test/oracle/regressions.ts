// SPDX-License-Identifier: Apache-2.0
// Shrunk counterexamples that were found earlier. Cases contain the oracle's result, so that they can be
// replayed without it. A correct packing may change, so packings are checked again.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Rejections } from './compare.ts';
import type { PackCase } from './generate/pools.ts';
import type { Case } from './objects.ts';

export interface Regression extends Case {
  /** What was wrong, in a few words. */
  readonly title: string;
  readonly rejections: Rejections;
}

interface Stored<T> {
  readonly file: string;
  readonly found: T;
}

const caseFolder = join(import.meta.dirname, 'regressions');
const packingFolder = join(caseFolder, 'packings');

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
  return read(caseFolder);
}

export function readPackRegressions(): readonly Stored<PackCase>[] {
  return read(packingFolder);
}

/** Returns the file's path. */
export function writeRegression(name: string, regression: Regression): string {
  return write(caseFolder, name, regression);
}

/** Returns the file's path. */
export function writePackRegression(name: string, found: PackCase): string {
  return write(packingFolder, name, found);
}
