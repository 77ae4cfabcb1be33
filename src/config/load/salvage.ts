// SPDX-License-Identifier: Apache-2.0
// The part of a faulty file that the schema accepts, so that the checks can look at it and all problems come
// out in one run. What was refused is taken out, piece by piece, until the rest is valid.
import type * as z from 'zod';
import { type ConfigPath, valueAt } from '../config-path.ts';
import { plainIssues, refusedPaths } from '../issues/plain-issues.ts';
import { removeAt, setAt } from '../overrides/tree-edit.ts';
import { type ConfigFile, configSchema } from '../schema/index.ts';

const MOST_ROUNDS = 12;

export interface Salvaged {
  readonly file: ConfigFile;
  /** Where each remaining pool stood, since pools that were refused are gone. */
  readonly poolIndices: readonly number[];
}

export function salvage(
  tree: Readonly<Record<string, unknown>>,
  issues: readonly z.core.$ZodIssue[],
): Salvaged | undefined {
  const rest: Record<string, unknown> = structuredClone(tree);
  const pools: readonly unknown[] = Array.isArray(rest['pools']) ? rest['pools'] : [];
  const indexOf = new Map(pools.map((pool, index) => [pool, index]));
  let remaining: readonly z.core.$ZodIssue[] = issues;
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    removeAll(rest, plainIssues(remaining, rest).flatMap(refusedPaths));
    const kept: readonly unknown[] = Array.isArray(rest['pools']) ? rest['pools'] : [];
    const parsed = configSchema.safeParse(rest);
    if (parsed.success) {
      return { file: parsed.data, poolIndices: kept.map((pool) => indexOf.get(pool) ?? 0) };
    }
    remaining = parsed.error.issues;
  }
  return undefined;
}

function removeAll(tree: Record<string, unknown>, paths: readonly ConfigPath[]): void {
  const targets = paths.map((path) => targetOf(tree, path));
  // Deeper and later ones first: removing a pool moves the ones behind it.
  for (const path of targets.toSorted(compareBackwards)) {
    const instead = standIn(tree, path);
    if (instead !== undefined) setAt(tree, path, instead);
    else if (path.length > 0) removeAt(tree, path);
  }
}

/**
 * A pool must not go for its name or size: the rest of it is worth a look. The stand-ins are such that no
 * check finds fault with them.
 */
function standIn(tree: unknown, path: ConfigPath): unknown {
  const [section, index, key, inner] = path;
  if (section !== 'pools' || typeof index !== 'number') return undefined;
  if (path.length === 3 && key === 'name') return `refused-${index}`;
  if (key === 'size') return path.length === 3 ? { cpu: 1, memory: '1Pi', disk: '1Pi' } : undefined;
  if (path.length !== 4 || key !== 'limits' || inner !== 'max') return undefined;
  const min = valueAt(tree, [section, index, key, 'min']);
  return typeof min === 'number' ? min : 0;
}

/** What to take out: the value; for one that is missing, what it is missing in; never one item of a list. */
function targetOf(tree: unknown, path: ConfigPath): ConfigPath {
  const [section, index, key] = path;
  if (section === 'pools' && typeof index === 'number' && (key === 'size' || key === 'name')) {
    return [section, index, key];
  }
  const present = valueAt(tree, path) === undefined ? path.slice(0, -1) : path;
  const inPool = present[0] === 'pools' && typeof present[1] === 'number' ? 2 : 0;
  const list = present.findIndex((step, index) => index >= inPool && typeof step === 'number');
  return list < 0 ? present : present.slice(0, list);
}

function compareBackwards(left: ConfigPath, right: ConfigPath): number {
  if (left[0] === 'pools' && right[0] === 'pools') {
    const difference = Number(right[1] ?? -1) - Number(left[1] ?? -1);
    if (difference !== 0) return difference;
  }
  return right.length - left.length;
}
