// SPDX-License-Identifier: Apache-2.0
// Flattens schema issues to one list with full paths. For a value with several forms, only the issues of
// the intended form remain.
import type * as z from 'zod';
import { type ConfigPath, configPathKey, valueAt } from '../config-path.ts';
import { selectUnionBranch } from './union-branch.ts';

type Issue = z.core.$ZodIssue;

export interface FlatIssue {
  /** An `invalid_union` issue only when no form was intended. */
  readonly issue: Issue;
  readonly path: ConfigPath;
}

export function flattenIssues(issues: readonly Issue[], tree: unknown): readonly FlatIssue[] {
  return dropRepeatedBounds(issues.flatMap((issue) => flattenIssue(issue, [], tree)));
}

/** The library reports a number that is far out of range twice; the narrower bound is the last one. */
function dropRepeatedBounds(issues: readonly FlatIssue[]): readonly FlatIssue[] {
  const bounds = issues.filter(
    ({ issue }) => issue.code === 'too_big' || issue.code === 'too_small',
  );
  const last = new Map(bounds.map((bound) => [configPathKey(bound.path), bound]));
  return issues.filter((one) => !bounds.includes(one) || last.get(configPathKey(one.path)) === one);
}

function flattenIssue(issue: Issue, base: ConfigPath, tree: unknown): readonly FlatIssue[] {
  const path = [...base, ...issue.path.map((step) => (typeof step === 'symbol' ? '' : step))];
  if (issue.code !== 'invalid_union') return [{ issue, path }];
  const value = valueAt(tree, path);
  const branch = value === undefined ? undefined : selectUnionBranch(issue.errors, value);
  return branch === undefined
    ? [{ issue, path }]
    : branch.flatMap((inner) => flattenIssue(inner, path, tree));
}

/** Paths of the values, keys or missing keys that the issue concerns. */
export function findRefusedPaths({ issue, path }: FlatIssue): readonly ConfigPath[] {
  return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...path, key]) : [path];
}
