// SPDX-License-Identifier: Apache-2.0
// Converts a Pod object: keeps the fields that decide where it can run, and refuses invalid values.

import { type HostPort, readHostPort } from './host-port.ts';
import type { Labels } from './labels.ts';
import { parseNodeSelectorTerm, readNodeSelector } from './node-selector.ts';
import { accepted, type Parsed, refused } from './parsed.ts';
import type { EvictionHints, Pod, PreferredNodes } from './pod.ts';
import {
  type PodAffinityTerm,
  type PodAffinityTermSource,
  parseAffinityTerm,
  type TermOwner,
} from './pod-affinity.ts';
import { isSidecar, podHeldResources, podRequests } from './pod-requests.ts';
import type { PodAffinitySource, PodSource, PodSpecSource } from './pod-source.ts';
import { isLocalVolume, readPodVolume } from './pod-volume.ts';
import { parseToleration } from './taints.ts';
import {
  isHardConstraint,
  parseSpreadConstraint,
  type SpreadConstraint,
} from './topology-spread.ts';

const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';
const SAFE_TO_EVICT_ANNOTATION = 'cluster-autoscaler.kubernetes.io/safe-to-evict';
const SAFE_VOLUMES_ANNOTATION = 'cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes';
const DO_NOT_DISRUPT_ANNOTATION = 'karpenter.sh/do-not-disrupt';

export function podFromKubernetes(source: PodSource): Parsed<Pod> {
  const demand = readDemand(source);
  if (!demand.ok) return refused(`pod '${source.metadata.name ?? ''}': ${demand.problem}`);
  return accepted(newPod(source, demand.value));
}

// One literal with all fields. Put together from several objects, each pod would take twice the memory and time.
function newPod(source: PodSource, demand: PodDemand): Pod {
  const identity = readIdentity(source);
  const state = readState(source);
  const { annotations, ownerReferences } = source.metadata;
  const owner = ownerReferences?.find((one) => one.controller === true);
  const eviction = readEvictionHints(annotations ?? {}, source.spec?.volumes ?? []);
  return {
    name: identity.name,
    namespace: identity.namespace,
    uid: identity.uid,
    labels: identity.labels,
    isMirror: identity.isMirror,
    isTerminating: identity.isTerminating,
    createdAt: identity.createdAt,
    nodeName: state.nodeName,
    nominatedNodeName: state.nominatedNodeName,
    isFinished: state.isFinished,
    isGated: state.isGated,
    priority: state.priority,
    requests: demand.requests,
    held: demand.held,
    tolerations: demand.tolerations,
    nodeSelector: demand.nodeSelector,
    preferredNodes: demand.preferredNodes,
    affinity: demand.affinity,
    antiAffinity: demand.antiAffinity,
    spread: demand.spread,
    hostPorts: demand.hostPorts,
    volumes: demand.volumes,
    requiredFeatures: demand.requiredFeatures,
    resourceClaims: demand.resourceClaims,
    ...(owner && { controller: { kind: owner.kind, name: owner.name, uid: owner.uid } }),
    ...(eviction && { eviction }),
    ...(demand.softSpread.length > 0 && { softSpread: demand.softSpread }),
    ...(demand.nodeAffinity && { nodeAffinity: demand.nodeAffinity }),
  };
}

type PodIdentity = Pick<
  Pod,
  'name' | 'namespace' | 'uid' | 'labels' | 'isMirror' | 'isTerminating' | 'createdAt'
>;

function readIdentity({ metadata }: PodSource): PodIdentity {
  return {
    name: metadata.name ?? '',
    namespace: metadata.namespace ?? 'default',
    uid: metadata.uid ?? '',
    labels: metadata.labels ?? {},
    isMirror: Object.hasOwn(metadata.annotations ?? {}, MIRROR_ANNOTATION),
    isTerminating: Boolean(metadata.deletionTimestamp),
    createdAt: Date.parse(metadata.creationTimestamp ?? '') || 0,
  };
}

type PodState = Pick<Pod, 'nodeName' | 'nominatedNodeName' | 'isFinished' | 'isGated' | 'priority'>;

const FINISHED: readonly unknown[] = ['Succeeded', 'Failed'];

function readState(source: PodSource): PodState {
  const spec = source.spec ?? {};
  const status = source.status ?? {};
  return {
    nodeName: spec.nodeName ?? '',
    nominatedNodeName: status.nominatedNodeName ?? '',
    isFinished: FINISHED.includes(status.phase),
    isGated: (spec.schedulingGates ?? []).length > 0,
    priority: spec.priority ?? 0,
  };
}

function readEvictionHints(
  annotations: Labels,
  volumes: NonNullable<PodSpecSource['volumes']>,
): EvictionHints | undefined {
  const safeToEvict = annotations[SAFE_TO_EVICT_ANNOTATION];
  const isSet = safeToEvict === 'true' || safeToEvict === 'false';
  const safeVolumes = annotations[SAFE_VOLUMES_ANNOTATION]?.split(',') ?? [];
  const localVolumes = volumes
    .filter((volume) => isLocalVolume(volume) && !safeVolumes.includes(volume.name))
    .map(({ name }) => name);
  const hints: EvictionHints = {
    ...(isSet && { safeToEvict: safeToEvict === 'true' }),
    ...(annotations[DO_NOT_DISRUPT_ANNOTATION] === 'true' && { doNotDisrupt: true as const }),
    ...(localVolumes.length > 0 && { localVolumes }),
  };
  return Object.keys(hints).length === 0 ? undefined : hints;
}

type PodDemand = Pick<
  Pod,
  | 'requests'
  | 'held'
  | 'tolerations'
  | 'nodeSelector'
  | 'preferredNodes'
  | 'affinity'
  | 'antiAffinity'
  | 'spread'
  | 'hostPorts'
  | 'volumes'
  | 'requiredFeatures'
  | 'resourceClaims'
> & {
  readonly nodeAffinity: Pod['nodeAffinity'] | undefined;
  readonly softSpread: readonly SpreadConstraint[];
};

function readDemand(source: PodSource): Parsed<PodDemand> {
  const spec = source.spec ?? {};
  const amounts = readResources(source);
  if (!amounts.ok) return amounts;
  const constraints = readPodConstraints(source, spec);
  if (!constraints.ok) return constraints;
  const tolerations = readEach(spec.tolerations, parseToleration);
  if (!tolerations.ok) return tolerations;
  return accepted({
    requests: amounts.value.requests,
    held: amounts.value.held,
    tolerations: tolerations.value,
    nodeSelector: spec.nodeSelector ?? {},
    nodeAffinity: readRequiredNodes(spec),
    preferredNodes: readPreferredNodes(spec),
    affinity: constraints.value.affinity,
    antiAffinity: constraints.value.antiAffinity,
    spread: constraints.value.spread,
    softSpread: readSoftSpread(spec, source.metadata.labels ?? {}),
    hostPorts: readHostPorts(spec),
    volumes: (spec.volumes ?? []).flatMap(
      (one) => readPodVolume(one, source.metadata.name ?? '') ?? [],
    ),
    requiredFeatures: requiredFeatures(spec),
    resourceClaims: (spec.resourceClaims ?? []).map(({ name }) => name),
  });
}

// As in the scheduler of 1.36, which infers these features from the pod.
function requiredFeatures(spec: PodSpecSource): readonly string[] {
  const rules = [...(spec.containers ?? []), ...(spec.initContainers ?? [])].flatMap(
    ({ restartPolicyRules }) => restartPolicyRules ?? [],
  );
  return [
    ...(rules.some(({ action }) => action === 'RestartAllContainers')
      ? ['RestartAllContainersOnContainerExits']
      : []),
    ...(spec.hostNetwork === true && spec.hostUsers === false
      ? ['UserNamespacesHostNetworkSupport']
      : []),
  ];
}

function readResources(source: PodSource): Parsed<Pick<Pod, 'requests' | 'held'>> {
  const requests = podRequests(source);
  if (!requests.ok) return requests;
  const hasStatus = source.status?.containerStatuses || source.status?.resources;
  const held =
    hasStatus || source.status?.initContainerStatuses ? podHeldResources(source) : requests;
  return held.ok ? accepted({ requests: requests.value, held: held.value }) : held;
}

function readPodConstraints(
  source: PodSource,
  spec: PodSpecSource,
): Parsed<Pick<Pod, 'affinity' | 'antiAffinity' | 'spread'>> {
  const labels = source.metadata.labels ?? {};
  const owner = { namespace: source.metadata.namespace ?? 'default', labels };
  const affinity = readTerms(spec.affinity?.podAffinity, owner);
  if (!affinity.ok) return affinity;
  const antiAffinity = readTerms(spec.affinity?.podAntiAffinity, owner);
  if (!antiAffinity.ok) return antiAffinity;
  const hard = (spec.topologySpreadConstraints ?? []).filter(isHardConstraint);
  const spread = readEach(hard, (one) => parseSpreadConstraint(one, labels));
  if (!spread.ok) return spread;
  return accepted({
    affinity: affinity.value,
    antiAffinity: antiAffinity.value,
    spread: spread.value,
  });
}

// An invalid one does not prevent that the pod is scheduled.
function readSoftSpread(
  { topologySpreadConstraints }: PodSpecSource,
  labels: Labels,
): readonly SpreadConstraint[] {
  return (topologySpreadConstraints ?? []).flatMap((source) => {
    if (isHardConstraint(source)) return [];
    const constraint = parseSpreadConstraint(source, labels);
    return constraint.ok ? [constraint.value] : [];
  });
}

function readTerms(
  source: PodAffinitySource | null | undefined,
  owner: TermOwner,
): Parsed<readonly PodAffinityTerm[]> {
  return readEach(
    source?.requiredDuringSchedulingIgnoredDuringExecution,
    (term: PodAffinityTermSource) => parseAffinityTerm(term, owner),
  );
}

function readRequiredNodes({ affinity }: PodSpecSource): Pod['nodeAffinity'] {
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required ? readNodeSelector(required.nodeSelectorTerms ?? []) : undefined;
}

function readPreferredNodes({ affinity }: PodSpecSource): readonly PreferredNodes[] {
  const preferred = affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  return preferred.flatMap(({ weight, preference }): readonly PreferredNodes[] => {
    const term = parseNodeSelectorTerm(preference);
    return term.ok ? [{ weight, term: term.value }] : [];
  });
}

// An init container that is not a sidecar has ended before the pod serves, so its ports are free again.
function readHostPorts(spec: PodSpecSource): readonly HostPort[] {
  const running = [...(spec.initContainers ?? []).filter(isSidecar), ...(spec.containers ?? [])];
  return running
    .flatMap((container) => container.ports ?? [])
    .flatMap((port) => readHostPort(port) ?? []);
}

function readEach<S, T>(
  sources: readonly S[] | null | undefined,
  parse: (source: S) => Parsed<T>,
): Parsed<readonly T[]> {
  const values: T[] = [];
  for (const source of sources ?? []) {
    const parsed = parse(source);
    if (!parsed.ok) return parsed;
    values.push(parsed.value);
  }
  return accepted(values);
}
