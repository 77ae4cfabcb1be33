// SPDX-License-Identifier: Apache-2.0
// What is kept of a Node.
import { checkTaint, type Taint } from '../model/taints.ts';
import type { ClusterNode } from '../ports/cluster.ts';
import { heldFields } from './managed-fields.ts';
import type { NodeObject, ObjectMeta, TaintObject } from './objects.ts';

/** Whole manifests that tools leave on objects: large, and of no use here. */
const BULKY_ANNOTATION = 'kubectl.kubernetes.io/last-applied-configuration';

export function nodeView({ metadata, spec = {}, status = {} }: NodeObject): ClusterNode {
  return {
    ...identity(metadata),
    providerId: spec.providerID ?? '',
    systemUuid: (status.nodeInfo?.systemUUID ?? '').toLowerCase(),
    ...readiness(status.conditions ?? []),
    unschedulable: spec.unschedulable ?? false,
    taints: taintsOf(spec.taints ?? []),
    addresses: addressesOf(status.addresses),
    capacity: status.capacity ?? {},
    allocatable: status.allocatable ?? {},
  };
}

function identity(metadata: ObjectMeta) {
  const { labels, annotations } = heldFields(metadata);
  return {
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
    isTerminating: Boolean(metadata.deletionTimestamp),
    createdAt: timeOf(metadata.creationTimestamp) ?? 0,
    labels: metadata.labels ?? {},
    annotations: annotationsOf(metadata.annotations ?? {}),
    declared: { labels, annotations },
  };
}

type Addresses = NonNullable<NodeObject['status']>['addresses'];

function addressesOf(addresses: Addresses): readonly string[] {
  return (addresses ?? []).filter(({ type }) => type.endsWith('IP')).map(({ address }) => address);
}

type Conditions = NonNullable<NonNullable<NodeObject['status']>['conditions']>;

function readiness(
  conditions: Conditions,
): Pick<ClusterNode, 'ready' | 'readyChangedAt' | 'notReadyReason'> {
  const condition = conditions.find(({ type }) => type === 'Ready');
  if (condition === undefined) {
    return {
      ready: false,
      readyChangedAt: undefined,
      notReadyReason: 'no status was reported yet',
    };
  }
  const ready = condition.status === 'True';
  const words = [condition.reason, condition.message].filter((one) => (one ?? '') !== '');
  return {
    ready,
    readyChangedAt: timeOf(condition.lastTransitionTime),
    notReadyReason: ready ? '' : words.join(': ') || `Ready is ${condition.status}`,
  };
}

function annotationsOf(all: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  if (all[BULKY_ANNOTATION] === undefined) return all;
  return Object.fromEntries(Object.entries(all).filter(([key]) => key !== BULKY_ANNOTATION));
}

/** The API server lets in no taint that is none. */
function taintsOf(taints: readonly TaintObject[]): readonly Taint[] {
  return taints.flatMap((one) => {
    const taint = checkTaint(one);
    return taint.ok ? [taint.value] : [];
  });
}

function timeOf(text: string | null | undefined): number | undefined {
  const time = Date.parse(text ?? '');
  return Number.isNaN(time) ? undefined : time;
}
