// SPDX-License-Identifier: Apache-2.0
// Which pods an affinity term selects. The scheduler evaluates terms of pending and of placed pods differently;
// both variants are reproduced here on purpose.

import type { Labels } from '../../model/labels.ts';
import type { PodAffinityTerm } from '../../model/pod-affinity.ts';
import { matchesSelector } from '../../model/selector.ts';

interface SelectablePod {
  readonly namespace: string;
  readonly labels: Labels;
}

export type NamespaceLabels = ReadonlyMap<string, Labels>;

const NO_LABELS: Labels = {};

/** Whether a term of a placed pod selects this pending pod. */
export function termSelectsPending(
  term: PodAffinityTerm,
  pending: SelectablePod,
  namespaces: NamespaceLabels,
): boolean {
  return (
    (term.namespaces.includes(pending.namespace) ||
      matchesSelector(term.namespaceSelector, namespaces.get(pending.namespace) ?? NO_LABELS)) &&
    matchesSelector(term.selector, pending.labels)
  );
}

/**
 * Whether a term of the pending pod selects this other pod. As in the scheduler, the namespace selector is
 * evaluated on the namespaces and once more on empty labels, so a negative one (NotIn, DoesNotExist) selects
 * every namespace.
 */
export function termSelectsExisting(
  term: PodAffinityTerm,
  other: SelectablePod,
  namespaces: NamespaceLabels,
): boolean {
  return (
    selectsNamespace(term, other.namespace, namespaces) &&
    matchesSelector(term.selector, other.labels)
  );
}

function selectsNamespace(
  term: PodAffinityTerm,
  namespace: string,
  namespaces: NamespaceLabels,
): boolean {
  if (term.namespaces.includes(namespace)) return true;
  if (matchesSelector(term.namespaceSelector, NO_LABELS)) return true;
  const labels = namespaces.get(namespace);
  return labels !== undefined && matchesSelector(term.namespaceSelector, labels);
}
