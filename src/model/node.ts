// SPDX-License-Identifier: Apache-2.0
// A Node, reduced to what the scheduler reads.

import { formatLabels, type Labels } from './labels.ts';
import { accepted, type Parsed, refused } from './parsed.ts';
import { parseResources, type Resources } from './resources.ts';
import { checkTaint, type Taint, type TaintSource } from './taints.ts';

export interface Node {
  readonly name: string;
  readonly labels: Labels;
  readonly taints: readonly Taint[];
  /** Cordoned. */
  readonly isUnschedulable: boolean;
  /** Total that pods may request. A resource that is not listed does not exist on the node. */
  readonly allocatable: Resources;
  /** Features of its kubelet and runtime that pods may require. */
  readonly declaredFeatures: readonly string[];
}

/** Whether the scheduler sees no difference. */
export function isSameNode(one: Node, other: Node): boolean {
  return one === other || JSON.stringify(comparable(one)) === JSON.stringify(comparable(other));
}

/** Labels in the order of their names, because their order in an object means nothing. */
function comparable({ labels, ...rest }: Node): unknown {
  return [
    formatLabels(labels),
    rest.name,
    rest.taints,
    rest.isUnschedulable,
    rest.allocatable,
    rest.declaredFeatures,
  ];
}

/** A Node object of the Kubernetes API. */
export interface NodeSource {
  readonly metadata: { readonly name: string; readonly labels?: Labels | null };
  readonly spec?: {
    readonly unschedulable?: boolean | null;
    readonly taints?: readonly TaintSource[] | null;
  } | null;
  readonly status?: {
    readonly allocatable?: Readonly<Record<string, string | number>> | null;
    readonly declaredFeatures?: readonly string[] | null;
  } | null;
}

export function nodeFromKubernetes(source: NodeSource): Parsed<Node> {
  const { name } = source.metadata;
  const spec = source.spec ?? {};
  const status = source.status ?? {};
  const taints: Taint[] = [];
  for (const one of spec.taints ?? []) {
    const taint = checkTaint(one);
    if (!taint.ok) return refused(`node '${name}': ${taint.problem}`);
    taints.push(taint.value);
  }
  const allocatable = parseResources(status.allocatable ?? {});
  if (!allocatable.ok) return refused(`node '${name}': ${allocatable.problem}`);
  return accepted({
    name,
    labels: source.metadata.labels ?? {},
    taints,
    isUnschedulable: spec.unschedulable ?? false,
    allocatable: allocatable.value,
    declaredFeatures: status.declaredFeatures ?? [],
  });
}
