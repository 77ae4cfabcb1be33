// SPDX-License-Identifier: Apache-2.0
// The part of a faulty file that the schema accepts, so that the checks can look at it and all problems come
// out in one run. What was refused is taken out, piece by piece, until the rest is valid.
import type * as z from 'zod';
import { type ConfigPath, configPathKey, valueAt } from '../config-path.ts';
import { findRefusedPaths, flattenIssues } from '../issues/flatten-issues.ts';
import { removeAt, setAt } from '../overrides/tree-edit.ts';
import { type ConfigFile, configSchema } from '../schema/index.ts';
import { findSubstitute } from './substitute.ts';

const MAX_PASSES = 12;

export interface ValidPart {
  readonly file: ConfigFile;
  /** Where each remaining pool stood, since pools that were refused are gone. */
  readonly poolIndices: readonly number[];
}

interface RemainingTree {
  readonly tree: Record<string, unknown>;
  /** By pathKey: what has got a stand-in. */
  readonly replaced: Set<string>;
}

function poolsOf({ tree }: RemainingTree): readonly unknown[] {
  return Array.isArray(tree['pools']) ? tree['pools'] : [];
}

export function extractValidPart(
  tree: Readonly<Record<string, unknown>>,
  issues: readonly z.core.$ZodIssue[],
): ValidPart | undefined {
  const rest: RemainingTree = { tree: structuredClone(tree), replaced: new Set() };
  const pools = poolsOf(rest);
  const indexOf = new Map(pools.map((pool, index) => [pool, index]));
  let remaining: readonly z.core.$ZodIssue[] = issues;
  for (let round = 0; round < MAX_PASSES; round += 1) {
    removeRefused(rest, flattenIssues(remaining, rest.tree).flatMap(findRefusedPaths));
    const kept = poolsOf(rest);
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
  // Deeper and later ones first: removing a pool moves the ones behind it.
  for (const path of targets.toSorted(compareDeepestFirst)) {
    const instead = replaced.has(configPathKey(path)) ? undefined : findSubstitute(tree, path);
    // Refused once more: it is the name that is wrong.
    replaced.add(configPathKey(path));
    if (instead !== undefined) setAt(tree, path, instead);
    else if (path.length > 0) removeAt(tree, path);
  }
}

/** What to take out: the value; for one that is missing, what it is missing in; never one item of a list. */
function pathToRemove({ tree, replaced }: RemainingTree, path: ConfigPath): ConfigPath {
  if (!replaced.has(configPathKey(path)) && findSubstitute(tree, path) !== undefined) return path;
  const inSize = pathToRemoveInSize(path);
  if (inSize !== undefined) return inSize;
  const present = valueAt(tree, path) === undefined ? path.slice(0, -1) : path;
  const inPool = present[0] === 'pools' && typeof present[1] === 'number' ? 2 : 0;
  const list = present.findIndex((step, index) => index >= inPool && typeof step === 'number');
  return list < 0 ? present : present.slice(0, list);
}

/** An unknown key of a size goes alone, so that the other sizes of the pool are looked at. */
function pathToRemoveInSize(path: ConfigPath): ConfigPath | undefined {
  const [section, index, key, ...inner] = path;
  if (section !== 'pools' || typeof index !== 'number' || key !== 'size') return undefined;
  const isSpan = inner[0] === 'min' || inner[0] === 'max' || inner[0] === 'step';
  return isSpan ? path.slice(0, 3) : path;
}

function compareDeepestFirst(left: ConfigPath, right: ConfigPath): number {
  if (left[0] === 'pools' && right[0] === 'pools') {
    const difference = Number(right[1] ?? -1) - Number(left[1] ?? -1);
    if (difference !== 0) return difference;
  }
  return right.length - left.length;
}
