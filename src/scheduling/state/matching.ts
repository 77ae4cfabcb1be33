// SPDX-License-Identifier: Apache-2.0
// Whom an affinity term means. The scheduler answers this differently for a pod it places and for one that
// runs; both ways are kept as they are, since the question is what the scheduler will do.

import type { Labels } from '../../model/labels.ts';
import type { PodAffinityTerm } from '../../model/pod-affinity.ts';
import { matches } from '../../model/selector.ts';

interface Meant {
  readonly namespace: string;
  readonly labels: Labels;
}

export type NamespaceLabels = ReadonlyMap<string, Labels>;

const NO_LABELS: Labels = {};

/** Whether a term of a running pod means this pending pod. */
export function meansPending(
  term: PodAffinityTerm,
  pending: Meant,
  namespaces: NamespaceLabels,
): boolean {
  return (
    (term.namespaces.includes(pending.namespace) ||
      matches(term.namespaceSelector, namespaces.get(pending.namespace) ?? NO_LABELS)) &&
    matches(term.selector, pending.labels)
  );
}

/**
 * Whether a term of the pending pod means this other pod. Its selector of namespaces is looked up among the
 * namespaces and then tried once more on no labels at all, so that a negative one (NotIn, DoesNotExist)
 * means every namespace.
 */
export function meansOther(
  term: PodAffinityTerm,
  other: Meant,
  namespaces: NamespaceLabels,
): boolean {
  return (
    isNamespaceMeant(term, other.namespace, namespaces) && matches(term.selector, other.labels)
  );
}

function isNamespaceMeant(
  term: PodAffinityTerm,
  namespace: string,
  namespaces: NamespaceLabels,
): boolean {
  if (term.namespaces.includes(namespace)) return true;
  if (matches(term.namespaceSelector, NO_LABELS)) return true;
  const labels = namespaces.get(namespace);
  return labels !== undefined && matches(term.namespaceSelector, labels);
}
