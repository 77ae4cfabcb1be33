// SPDX-License-Identifier: Apache-2.0
// Shrunk counterexamples of the past, each with the oracle's verdict, so that they can be replayed without it.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Case } from './objects.ts';
import type { Rejections } from './oracle.ts';

export interface Regression extends Case {
  /** What went wrong once, in a few words. */
  readonly title: string;
  readonly rejections: Rejections;
}

const folder = join(import.meta.dirname, 'regressions');

export function readRegressions(): readonly {
  readonly file: string;
  readonly found: Regression;
}[] {
  mkdirSync(folder, { recursive: true });
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => ({ file, found: JSON.parse(readFileSync(join(folder, file), 'utf8')) }));
}

/** Returns the file's path. */
export function writeRegression(name: string, regression: Regression): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${name}.json`);
  writeFileSync(path, `${JSON.stringify(regression, null, 2)}\n`);
  return path;
}
