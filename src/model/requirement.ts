// SPDX-License-Identifier: Apache-2.0
// One condition on labels. Label selectors and node affinity are lists of these.

import { readInt64 } from './int64.ts';
import { type Labels, parseLabelKey, parseLabelValue } from './labels.ts';
import { accepted, type Parsed, refused } from './parsed.ts';

const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'] as const;

export type RequirementOperator = (typeof OPERATORS)[number];

interface ValueRule {
  readonly accepts: (values: readonly string[]) => boolean;
  readonly otherwise: string;
}

const SOME: ValueRule = { accepts: hasValues, otherwise: 'needs at least one value' };
const NONE: ValueRule = { accepts: hasNoValues, otherwise: 'takes no values' };
const NUMBER: ValueRule = {
  accepts: hasOneInteger,
  otherwise: 'needs exactly one value, which must be an integer',
};

const VALUES: Readonly<Record<RequirementOperator, ValueRule>> = {
  In: SOME,
  NotIn: SOME,
  Exists: NONE,
  DoesNotExist: NONE,
  Gt: NUMBER,
  Lt: NUMBER,
};

type Test = (value: string | undefined, values: readonly string[]) => boolean;

const TESTS: Readonly<Record<RequirementOperator, Test>> = {
  In: (value, values) => value !== undefined && values.includes(value),
  NotIn: (value, values) => value === undefined || !values.includes(value),
  Exists: (value) => value !== undefined,
  DoesNotExist: (value) => value === undefined,
  Gt: (value, values) => isGreater(value, values[0]),
  Lt: (value, values) => isGreater(values[0], value),
};

export interface Requirement {
  readonly key: string;
  readonly operator: RequirementOperator;
  readonly values: readonly string[];
}

/** A selector requirement of the Kubernetes API or a configuration file. */
export interface RequirementSource {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[] | null;
}

export function parseRequirement(source: RequirementSource): Parsed<Requirement> {
  const { key } = source;
  const values = source.values ?? [];
  const operator = OPERATORS.find((known) => known === source.operator);
  if (operator === undefined) {
    return refused(`unknown operator '${source.operator}'; operators are ${OPERATORS.join(', ')}`);
  }
  const checkedKey = parseLabelKey(key);
  if (!checkedKey.ok) return checkedKey;
  const problem = valuesProblem(operator, values);
  if (problem !== undefined) return refused(`operator ${operator} of key '${key}' ${problem}`);
  return accepted({ key, operator, values });
}

function valuesProblem(
  operator: RequirementOperator,
  values: readonly string[],
): string | undefined {
  const { accepts, otherwise } = VALUES[operator];
  return accepts(values) ? firstValueProblem(values) : otherwise;
}

function firstValueProblem(values: readonly string[]): string | undefined {
  for (const value of values) {
    const checked = parseLabelValue(value);
    if (!checked.ok) return `has an invalid value: ${checked.problem}`;
  }
  return undefined;
}

/** Whether the labels meet the requirement. Labels without the key meet NotIn, but not Gt and Lt. */
export function meetsRequirement(requirement: Requirement, labels: Labels): boolean {
  const { key, operator, values } = requirement;
  return TESTS[operator](Object.hasOwn(labels, key) ? labels[key] : undefined, values);
}

function hasValues(values: readonly string[]): boolean {
  return values.length > 0;
}

function hasNoValues(values: readonly string[]): boolean {
  return values.length === 0;
}

function hasOneInteger(values: readonly string[]): boolean {
  return values.length === 1 && readInt64(values[0] ?? '') !== undefined;
}

function isGreater(left: string | undefined, right: string | undefined): boolean {
  const greater = readInt64(left ?? '');
  const smaller = readInt64(right ?? '');
  return greater !== undefined && smaller !== undefined && greater > smaller;
}
