// SPDX-License-Identifier: Apache-2.0
// Every leaf value of the effective file with its origin.
import { type ConfigPath, formatConfigPath, isMapping } from '../config-path.ts';
import type { ValueOrigin } from '../overrides/origin.ts';

export interface ConfigLeaf {
  readonly path: ConfigPath;
  readonly value: unknown;
}

/** Values without children, including empty lists and mappings. */
export function* configLeaves(value: unknown, path: ConfigPath = []): Generator<ConfigLeaf> {
  const children = childEntries(value);
  if (children.length === 0) {
    if (value !== undefined) yield { path, value };
    return;
  }
  for (const [step, child] of children) yield* configLeaves(child, [...path, step]);
}

function childEntries(value: unknown): readonly (readonly [string | number, unknown])[] {
  if (Array.isArray(value)) return value.map((item: unknown, index) => [index, item] as const);
  return isMapping(value) ? Object.entries(value) : [];
}

export function mapLeafOrigins(
  file: unknown,
  originOf: (path: ConfigPath) => ValueOrigin,
): ReadonlyMap<string, ValueOrigin> {
  return new Map(
    [...configLeaves(file)].map(({ path }) => [formatConfigPath(path), originOf(path)]),
  );
}
