// SPDX-License-Identifier: Apache-2.0
// A PodDisruptionBudget, reduced to what decides whether pods may be evicted now.

import type { Labels } from './labels.ts';
import { accepted, type Parsed, refused } from './parsed.ts';
import {
  type LabelSelectorSource,
  matchesSelector,
  parseLabelSelector,
  type Selector,
} from './selector.ts';

export interface DisruptionBudget {
  readonly name: string;
  readonly namespace: string;
  readonly selector: Selector;
  /** How many more of its pods may be evicted now. */
  readonly disruptionsAllowed: number;
}

/** A PodDisruptionBudget object of the Kubernetes API. */
export interface DisruptionBudgetSource {
  readonly metadata: { readonly name: string; readonly namespace?: string | null };
  readonly spec?: { readonly selector?: LabelSelectorSource | null } | null;
  readonly status?: { readonly disruptionsAllowed?: number | null } | null;
}

/** A budget whose status is not set yet allows no disruption. */
export function disruptionBudgetFromKubernetes(
  source: DisruptionBudgetSource,
): Parsed<DisruptionBudget> {
  const { name } = source.metadata;
  const selector = parseLabelSelector(source.spec?.selector);
  if (!selector.ok) return refused(`PodDisruptionBudget '${name}': ${selector.problem}`);
  return accepted({
    name,
    namespace: source.metadata.namespace ?? 'default',
    selector: selector.value,
    disruptionsAllowed: source.status?.disruptionsAllowed ?? 0,
  });
}

export function coversPod(
  budget: DisruptionBudget,
  pod: { readonly namespace: string; readonly labels: Labels },
): boolean {
  return budget.namespace === pod.namespace && matchesSelector(budget.selector, pod.labels);
}
