// SPDX-License-Identifier: Apache-2.0
// Reads a Pod object: keeps what decides where it can run, refuses what makes no sense.

import { type HostPort, hostPort } from './host-port.ts';
import { parseNodeSelectorTerm, readNodeSelector } from './node-selector.ts';
import { accepted, type Parsed, refused } from './parsed.ts';
import type { Pod, PreferredNodes } from './pod.ts';
import {
  type PodAffinityTerm,
  type PodAffinityTermSource,
  parseAffinityTerm,
  type TermOwner,
} from './pod-affinity.ts';
import { isSidecar, podHeld, podRequests } from './pod-requests.ts';
import type { PodAffinitySource, PodSource, PodSpecSource } from './pod-source.ts';
import { podVolume } from './pod-volume.ts';
import { parseToleration } from './taints.ts';
import { isHardConstraint, parseSpreadConstraint } from './topology-spread.ts';

const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

export function podFromKubernetes(source: PodSource): Parsed<Pod> {
  const name = source.metadata.name ?? '';
  const demand = readDemand(source);
  if (!demand.ok) return refused(`pod '${name}': ${demand.problem}`);
  return accepted({ ...readIdentity(source), ...readState(source), ...demand.value });
}

type Identity = Pick<
  Pod,
  'name' | 'namespace' | 'uid' | 'labels' | 'controller' | 'isMirror' | 'isTerminating'
>;

function readIdentity({ metadata }: PodSource): Identity {
  const owner = metadata.ownerReferences?.find((one) => one.controller === true);
  return {
    name: metadata.name ?? '',
    namespace: metadata.namespace ?? 'default',
    uid: metadata.uid ?? '',
    labels: metadata.labels ?? {},
    ...(owner && { controller: { kind: owner.kind, name: owner.name, uid: owner.uid } }),
    isMirror: Object.hasOwn(metadata.annotations ?? {}, MIRROR_ANNOTATION),
    isTerminating: Boolean(metadata.deletionTimestamp),
  };
}

type State = Pick<Pod, 'nodeName' | 'nominatedNodeName' | 'isFinished' | 'isGated' | 'priority'>;

const FINISHED: readonly unknown[] = ['Succeeded', 'Failed'];

function readState(source: PodSource): State {
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

type Demand = Omit<Pod, keyof Identity | keyof State>;

function readDemand(source: PodSource): Parsed<Demand> {
  const spec = source.spec ?? {};
  const amounts = readAmounts(source);
  if (!amounts.ok) return amounts;
  const wishes = readWishes(source, spec);
  if (!wishes.ok) return wishes;
  const tolerations = readEach(spec.tolerations, parseToleration);
  if (!tolerations.ok) return tolerations;
  return accepted({
    ...amounts.value,
    ...wishes.value,
    ...readNodeWishes(spec),
    tolerations: tolerations.value,
    hostPorts: readHostPorts(spec),
    volumes: (spec.volumes ?? []).flatMap(
      (one) => podVolume(one, source.metadata.name ?? '') ?? [],
    ),
  });
}

function readAmounts(source: PodSource): Parsed<Pick<Pod, 'requests' | 'held'>> {
  const requests = podRequests(source);
  if (!requests.ok) return requests;
  const hasStatus = source.status?.containerStatuses || source.status?.resources;
  const held = hasStatus || source.status?.initContainerStatuses ? podHeld(source) : requests;
  return held.ok ? accepted({ requests: requests.value, held: held.value }) : held;
}

function readWishes(
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

function readTerms(
  source: PodAffinitySource | null | undefined,
  owner: TermOwner,
): Parsed<readonly PodAffinityTerm[]> {
  return readEach(
    source?.requiredDuringSchedulingIgnoredDuringExecution,
    (term: PodAffinityTermSource) => parseAffinityTerm(term, owner),
  );
}

function readNodeWishes(
  spec: PodSpecSource,
): Pick<Pod, 'nodeSelector' | 'nodeAffinity' | 'preferredNodes'> {
  const affinity = spec.affinity?.nodeAffinity;
  const required = affinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return {
    nodeSelector: spec.nodeSelector ?? {},
    ...(required && { nodeAffinity: readNodeSelector(required.nodeSelectorTerms ?? []) }),
    preferredNodes: (affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).flatMap(
      ({ weight, preference }): readonly PreferredNodes[] => {
        const term = parseNodeSelectorTerm(preference);
        return term.ok ? [{ weight, term: term.value }] : [];
      },
    ),
  };
}

// A plain init container is over before the pod serves anybody: its ports are free again.
function readHostPorts(spec: PodSpecSource): readonly HostPort[] {
  const lasting = [...(spec.initContainers ?? []).filter(isSidecar), ...(spec.containers ?? [])];
  return lasting
    .flatMap((container) => container.ports ?? [])
    .flatMap((port) => hostPort(port) ?? []);
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
