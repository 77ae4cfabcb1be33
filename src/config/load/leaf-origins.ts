// SPDX-License-Identifier: Apache-2.0
// Every value of the effective file with where it came from.
import { type ConfigPath, isMapping, pathText } from '../config-path.ts';
import type { Origin } from '../overrides/origin.ts';

export interface Leaf {
  readonly path: ConfigPath;
  readonly value: unknown;
}

/** Values that hold no others; an empty list or mapping is one. */
export function* leavesOf(value: unknown, path: ConfigPath = []): Generator<Leaf> {
  const children = childrenOf(value);
  if (children.length === 0) {
    if (value !== undefined) yield { path, value };
    return;
  }
  for (const [step, child] of children) yield* leavesOf(child, [...path, step]);
}

function childrenOf(value: unknown): readonly (readonly [string | number, unknown])[] {
  if (Array.isArray(value)) return value.map((item: unknown, index) => [index, item] as const);
  return isMapping(value) ? Object.entries(value) : [];
}

export function leafOrigins(
  file: unknown,
  originOf: (path: ConfigPath) => Origin,
): ReadonlyMap<string, Origin> {
  return new Map([...leavesOf(file)].map(({ path }) => [pathText(path), originOf(path)]));
}
