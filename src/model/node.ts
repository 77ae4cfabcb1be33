// SPDX-License-Identifier: Apache-2.0
// A node as a scheduler sees it.

import type { Labels } from './labels.ts';
import { accepted, type Parsed, refused } from './parsed.ts';
import { parseResources, type Resources } from './resources.ts';
import { checkTaint, type Taint, type TaintSource } from './taints.ts';

export interface Node {
  readonly name: string;
  readonly labels: Labels;
  readonly taints: readonly Taint[];
  /** Cordoned. */
  readonly isUnschedulable: boolean;
  /** What pods may hold in all; a kind that is not in it is not there at all. */
  readonly allocatable: Resources;
}

/** A Node as it comes from the Kubernetes API. */
export interface NodeSource {
  readonly metadata: { readonly name: string; readonly labels?: Labels | null };
  readonly spec?: {
    readonly unschedulable?: boolean | null;
    readonly taints?: readonly TaintSource[] | null;
  } | null;
  readonly status?: {
    readonly allocatable?: Readonly<Record<string, string | number>> | null;
  } | null;
}

export function nodeFromKubernetes(source: NodeSource): Parsed<Node> {
  const { name } = source.metadata;
  const taints: Taint[] = [];
  for (const one of source.spec?.taints ?? []) {
    const taint = checkTaint(one);
    if (!taint.ok) return refused(`node '${name}': ${taint.problem}`);
    taints.push(taint.value);
  }
  const allocatable = parseResources(source.status?.allocatable ?? {});
  if (!allocatable.ok) return refused(`node '${name}': ${allocatable.problem}`);
  return accepted({
    name,
    labels: source.metadata.labels ?? {},
    taints,
    isUnschedulable: source.spec?.unschedulable ?? false,
    allocatable: allocatable.value,
  });
}
