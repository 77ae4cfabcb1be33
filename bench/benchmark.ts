// SPDX-License-Identifier: Apache-2.0
// The interface of every benchmark.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface BenchmarkOptions {
  /** A small run that only checks that the benchmark works; its figures are meaningless. */
  readonly quick: boolean;
  /** Prints progress for the user. */
  readonly say: (text: string) => void;
}

export interface Outcome {
  readonly figures: object;
  /** The figures as lines of text. */
  readonly table: readonly string[];
}

export type Benchmark = (options: BenchmarkOptions) => Promise<Outcome>;

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  const high = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? high : (high + (sorted[middle - 1] ?? high)) / 2;
}

/** The NODE_OPTIONS of the container image. */
export function readNodeOptionsOfImage(): string {
  const image = readFileSync(join(import.meta.dirname, '../Dockerfile'), 'utf8');
  const options = /^ENV NODE_OPTIONS=(.+)$/m.exec(image)?.[1];
  if (options === undefined) throw new Error('the Dockerfile sets no NODE_OPTIONS');
  return options;
}
