// SPDX-License-Identifier: Apache-2.0
// Extracts the part of an invalid file that the schema accepts, so that the checks can run on it and all
// problems are reported in one run. Refused values are removed one by one until the rest is valid.
import type * as z from 'zod';
import { type ConfigPath, configPathKey, valueAt } from '../config-path.ts';
import { findRefusedPaths, flattenIssues } from '../issues/flatten-issues.ts';
import { removeAt, setAt } from '../overrides/tree-edit.ts';
import { type ConfigFile, configSchema } from '../schema/index.ts';
import { findSubstitute } from './substitute.ts';

const MAX_PASSES = 12;

export interface ValidPart {
  readonly file: ConfigFile;
  /** Original index of each remaining pool; refused pools are missing. */
  readonly poolIndices: readonly number[];
}

interface RemainingTree {
  readonly tree: Record<string, unknown>;
  /** By configPathKey: values that were replaced by a substitute. */
  readonly replaced: Set<string>;
}

function readPools({ tree }: RemainingTree): readonly unknown[] {
  return Array.isArray(tree['pools']) ? tree['pools'] : [];
}

export function extractValidPart(
  tree: Readonly<Record<string, unknown>>,
  issues: readonly z.core.$ZodIssue[],
): ValidPart | undefined {
  const rest: RemainingTree = { tree: structuredClone(tree), replaced: new Set() };
  const pools = readPools(rest);
  const indexOf = new Map(pools.map((pool, index) => [pool, index]));
  let remaining: readonly z.core.$ZodIssue[] = issues;
  for (let pass = 0; pass < MAX_PASSES; pass += 1) {
    removeRefused(rest, flattenIssues(remaining, rest.tree).flatMap(findRefusedPaths));
    const kept = readPools(rest);
    const parsed = configSchema.safeParse(rest.tree);
    if (parsed.success) {
      return { file: parsed.data, poolIndices: kept.map((pool) => indexOf.get(pool) ?? 0) };
    }
    remaining = parsed.error.issues;
  }
  return undefined;
}

function removeRefused(rest: RemainingTree, paths: readonly ConfigPath[]): void {
  const { tree, replaced } = rest;
  const targets = paths.map((path) => pathToRemove(rest, path));
  // Deeper paths and later pools first, because removing a pool shifts the following ones.
  for (const path of targets.toSorted(compareDeepestFirst)) {
    const substitute = replaced.has(configPathKey(path)) ? undefined : findSubstitute(tree, path);
    // If it is refused again, the name itself is wrong.
    replaced.add(configPathKey(path));
    if (substitute !== undefined) setAt(tree, path, substitute);
    else if (path.length > 0) removeAt(tree, path);
  }
}

/** The path to remove: the value, or the mapping that lacks a missing value; never a single list item. */
function pathToRemove({ tree, replaced }: RemainingTree, path: ConfigPath): ConfigPath {
  if (!replaced.has(configPathKey(path)) && findSubstitute(tree, path) !== undefined) return path;
  const inSize = pathToRemoveInSize(path);
  if (inSize !== undefined) return inSize;
  const present = valueAt(tree, path) === undefined ? path.slice(0, -1) : path;
  const firstListStep = present[0] === 'pools' && typeof present[1] === 'number' ? 2 : 0;
  const list = present.findIndex(
    (step, index) => index >= firstListStep && typeof step === 'number',
  );
  return list < 0 ? present : present.slice(0, list);
}

/** Removes only the unknown key of a size, so that the other sizes of the pool are still checked. */
function pathToRemoveInSize(path: ConfigPath): ConfigPath | undefined {
  const [section, index, key, ...inner] = path;
  if (section !== 'pools' || typeof index !== 'number' || key !== 'size') return undefined;
  const isSizeRange = inner[0] === 'min' || inner[0] === 'max' || inner[0] === 'step';
  return isSizeRange ? path.slice(0, 3) : path;
}

function compareDeepestFirst(left: ConfigPath, right: ConfigPath): number {
  if (left[0] === 'pools' && right[0] === 'pools') {
    const difference = Number(right[1] ?? -1) - Number(left[1] ?? -1);
    if (difference !== 0) return difference;
  }
  return right.length - left.length;
}
