// SPDX-License-Identifier: Apache-2.0
// Label selectors. An absent selector selects nothing; an empty one selects everything.

import type { Labels } from './labels.ts';
import { accepted, type Parsed, refused } from './parsed.ts';
import {
  meetsRequirement,
  parseRequirement,
  type Requirement,
  type RequirementSource,
} from './requirement.ts';

export type Selector =
  | { readonly selects: 'nothing' }
  | { readonly selects: 'matching'; readonly requirements: readonly Requirement[] };

/** A LabelSelector of the Kubernetes API or a configuration file. */
export interface LabelSelectorSource {
  readonly matchLabels?: Labels | null;
  readonly matchExpressions?: readonly RequirementSource[] | null;
}

export const SELECT_NOTHING: Selector = { selects: 'nothing' };

export function parseLabelSelector(
  source: LabelSelectorSource | null | undefined,
): Parsed<Selector> {
  if (source === null || source === undefined) return accepted(SELECT_NOTHING);
  const requirements: Requirement[] = [];
  for (const expression of expressions(source)) {
    const requirement = parseLabelExpression(expression);
    if (!requirement.ok) return requirement;
    requirements.push(requirement.value);
  }
  return accepted({ selects: 'matching', requirements });
}

function expressions(source: LabelSelectorSource): readonly RequirementSource[] {
  const equalities = Object.entries(source.matchLabels ?? {}).map(([key, value]) => ({
    key,
    operator: 'In',
    values: [value],
  }));
  return [...equalities, ...(source.matchExpressions ?? [])];
}

function parseLabelExpression(source: RequirementSource): Parsed<Requirement> {
  if (source.operator === 'Gt' || source.operator === 'Lt') {
    return refused(`operator ${source.operator} is supported in node affinity only`);
  }
  return parseRequirement(source);
}

/** Whether it selects everything. */
export function isEmptySelector(selector: Selector): boolean {
  return selector.selects === 'matching' && selector.requirements.length === 0;
}

export function matchesSelector(selector: Selector, labels: Labels): boolean {
  if (selector.selects === 'nothing') return false;
  return selector.requirements.every((requirement) => meetsRequirement(requirement, labels));
}
