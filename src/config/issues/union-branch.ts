// SPDX-License-Identifier: Apache-2.0
// Selects the intended form of a value with several forms by its shape, so that only the issues of that
// form are reported.
import type * as z from 'zod';
import { isMapping } from '../config-path.ts';

type Issue = z.core.$ZodIssue;

/** The issues of the intended form; undefined when there is none. */
export function selectUnionBranch(
  branches: readonly (readonly Issue[])[],
  value: unknown,
): readonly Issue[] | undefined {
  const fitting = branches.filter((issues) => !issues.some(isOtherKind));
  if (fitting.length <= 1) return fitting[0];
  const scored = fitting.map((issues) => ({ issues, misses: countMismatches(issues) }));
  const least = Math.min(...scored.map((branch) => branch.misses));
  const best = scored.filter((branch) => branch.misses === least);
  // No known key, or a mix of two forms: the message names the allowed forms instead.
  return best.length === 1 && !hasOnlyUnknownKeys(best[0]?.issues ?? [], value)
    ? best[0]?.issues
    : undefined;
}

/** Whether the whole value has another type than this form. */
function isOtherKind(issue: Issue): boolean {
  if (issue.path.length > 0) return false;
  if (issue.code === 'custom') return issue.params?.['expected'] !== undefined;
  return issue.code === 'invalid_type' || issue.code === 'invalid_value';
}

function countMismatches(issues: readonly Issue[]): number {
  return issues.reduce(
    (sum, issue) => sum + (issue.code === 'unrecognized_keys' ? 2 * issue.keys.length : 1),
    0,
  );
}

function hasOnlyUnknownKeys(issues: readonly Issue[], value: unknown): boolean {
  const unknown = issues.find(
    (issue) => issue.code === 'unrecognized_keys' && issue.path.length === 0,
  );
  if (unknown?.code !== 'unrecognized_keys' || !isMapping(value)) return false;
  return unknown.keys.length === Object.keys(value).length;
}
