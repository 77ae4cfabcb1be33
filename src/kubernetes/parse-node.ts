// SPDX-License-Identifier: Apache-2.0
// Converts a Node object to the fields that the engine uses.
import { checkTaint, type Taint } from '../model/taints.ts';
import type { ClusterNode } from '../ports/cluster.ts';
import { readManagedFields } from './managed-fields.ts';
import type { NodeObject, ObjectMeta, TaintObject } from './objects.ts';

/** kubectl stores whole manifests in this annotation; dropping it saves memory. */
const LARGE_ANNOTATION = 'kubectl.kubernetes.io/last-applied-configuration';

export function parseNode({ metadata, spec = {}, status = {} }: NodeObject): ClusterNode {
  return {
    ...parseMetadata(metadata),
    providerId: spec.providerID ?? '',
    systemUuid: (status.nodeInfo?.systemUUID ?? '').toLowerCase(),
    ...parseReadiness(status.conditions ?? []),
    unschedulable: spec.unschedulable ?? false,
    taints: parseTaints(spec.taints ?? []),
    addresses: parseAddresses(status.addresses),
    ...parseResources(status),
  };
}

function parseResources(
  status: NonNullable<NodeObject['status']>,
): Pick<ClusterNode, 'capacity' | 'allocatable' | 'declaredFeatures'> {
  return {
    capacity: status.capacity ?? {},
    allocatable: status.allocatable ?? {},
    declaredFeatures: status.declaredFeatures ?? [],
  };
}

function parseMetadata(metadata: ObjectMeta) {
  const { labels, annotations } = readManagedFields(metadata);
  return {
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
    isTerminating: Boolean(metadata.deletionTimestamp),
    createdAt: parseTime(metadata.creationTimestamp) ?? 0,
    labels: metadata.labels ?? {},
    annotations: keepSmallAnnotations(metadata.annotations ?? {}),
    declared: { labels, annotations },
  };
}

type Addresses = NonNullable<NodeObject['status']>['addresses'];

function parseAddresses(addresses: Addresses): readonly string[] {
  return (addresses ?? []).filter(({ type }) => type.endsWith('IP')).map(({ address }) => address);
}

type Conditions = NonNullable<NonNullable<NodeObject['status']>['conditions']>;

function parseReadiness(
  conditions: Conditions,
): Pick<ClusterNode, 'ready' | 'readyChangedAt' | 'notReadyReason'> {
  const condition = conditions.find(({ type }) => type === 'Ready');
  if (condition === undefined) {
    return {
      ready: false,
      readyChangedAt: undefined,
      notReadyReason: 'the kubelet has not reported a status yet',
    };
  }
  const ready = condition.status === 'True';
  const texts = [condition.reason, condition.message].filter((one) => (one ?? '') !== '');
  return {
    ready,
    readyChangedAt: parseTime(condition.lastTransitionTime),
    notReadyReason: ready ? '' : texts.join(': ') || `Ready is ${condition.status}`,
  };
}

function keepSmallAnnotations(
  all: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  if (all[LARGE_ANNOTATION] === undefined) return all;
  return Object.fromEntries(Object.entries(all).filter(([key]) => key !== LARGE_ANNOTATION));
}

/** Drops invalid taints, which the API server does not accept in the first place. */
function parseTaints(taints: readonly TaintObject[]): readonly Taint[] {
  return taints.flatMap((one) => {
    const taint = checkTaint(one);
    return taint.ok ? [taint.value] : [];
  });
}

function parseTime(text: string | null | undefined): number | undefined {
  const time = Date.parse(text ?? '');
  return Number.isNaN(time) ? undefined : time;
}
