// SPDX-License-Identifier: Apache-2.0
// All features that the simulation must implement, each as the edit that removes it from a case. A feature is
// decisive in a case if removing it, and nothing else, changes the oracle's result for some pod and node.

import type { Case, Container, Pod, PodAffinityTerm, SpreadConstraint, Volume } from './objects.ts';

type RemoveFeature = (edited: Case) => void;

function everyPod({ cluster, pending }: Case): Pod[] {
  return [...cluster.pods, ...pending];
}

function requestsOf(pods: readonly Pod[]): Record<string, string>[] {
  return pods.flatMap(({ spec }) =>
    [...spec.containers, ...(spec.initContainers ?? [])].map(
      (one) => one.resources?.requests ?? {},
    ),
  );
}

function withoutResource(matches: (name: string) => boolean): RemoveFeature {
  return ({ pending }) => {
    for (const requests of requestsOf(pending))
      for (const name of Object.keys(requests).filter(matches)) delete requests[name];
  };
}

function withoutInit(matches: (container: Container) => boolean): RemoveFeature {
  return (edited) => {
    for (const { spec } of everyPod(edited))
      if (spec.initContainers !== undefined)
        spec.initContainers = spec.initContainers.filter((one) => !matches(one));
  };
}

function terms(pods: readonly Pod[]): PodAffinityTerm[] {
  return pods.flatMap(({ spec }) => [
    ...(spec.affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
    ...(spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
  ]);
}

function withoutInTerms(edit: (term: PodAffinityTerm) => void): RemoveFeature {
  return (edited) => terms(everyPod(edited)).forEach(edit);
}

function withoutInSpread(edit: (constraint: SpreadConstraint) => void): RemoveFeature {
  return ({ pending }) =>
    pending.flatMap(({ spec }) => spec.topologySpreadConstraints ?? []).forEach(edit);
}

function dropMerged(
  selector: { matchExpressions?: { key: string; operator: string }[] } | undefined,
  keys: readonly string[] | undefined,
): void {
  if (selector?.matchExpressions === undefined || keys === undefined) return;
  selector.matchExpressions = selector.matchExpressions.filter(({ key }) => !keys.includes(key));
}

function dropTermKeys(term: PodAffinityTerm): void {
  dropMerged(term.labelSelector, [
    ...(term.matchLabelKeys ?? []),
    ...(term.mismatchLabelKeys ?? []),
  ]);
  delete term.matchLabelKeys;
  delete term.mismatchLabelKeys;
}

function dropSpreadKeys(constraint: SpreadConstraint): void {
  dropMerged(constraint.labelSelector, constraint.matchLabelKeys);
  delete constraint.matchLabelKeys;
}

function dropResize(edited: Case): void {
  for (const { status } of edited.cluster.pods) {
    if (status === undefined) continue;
    delete status.containerStatuses;
    delete status.initContainerStatuses;
    delete status.conditions;
    delete status.resources;
    delete status.allocatedResources;
  }
}

function dropVolumes(matches: (volume: Volume, pod: Pod, edited: Case) => boolean): RemoveFeature {
  return (edited) => {
    for (const pod of edited.pending)
      if (pod.spec.volumes !== undefined)
        pod.spec.volumes = pod.spec.volumes.filter((one) => !matches(one, pod, edited));
  };
}

function claimOf(volume: Volume, pod: Pod, { cluster }: Case) {
  const name =
    volume.ephemeral === undefined
      ? volume.persistentVolumeClaim?.claimName
      : `${pod.metadata.name}-${volume.name}`;
  return cluster.persistentVolumeClaims.find(
    ({ metadata }) => metadata.name === name && metadata.namespace === pod.metadata.namespace,
  );
}

function isDelayed(volume: Volume, pod: Pod, edited: Case): boolean {
  const spec = claimOf(volume, pod, edited)?.spec;
  return spec !== undefined && spec.volumeName === undefined && spec.storageClassName !== 'now';
}

function onPending(edit: (spec: Pod['spec']) => void): RemoveFeature {
  return ({ pending }) => {
    for (const { spec } of pending) edit(spec);
  };
}

const DEVICES = /\/|^hugepages-/;

export const FEATURES: Readonly<Record<string, RemoveFeature>> = {
  requests: onPending((spec) => {
    for (const one of spec.containers) delete one.resources;
  }),
  'init containers': withoutInit(({ restartPolicy }) => restartPolicy === undefined),
  sidecars: withoutInit(({ restartPolicy }) => restartPolicy === 'Always'),
  overhead: (edited) => {
    for (const { spec } of everyPod(edited)) delete spec.overhead;
  },
  'pod-level requests': (edited) => {
    for (const { spec } of everyPod(edited)) delete spec.resources;
  },
  'in-place resize': dropResize,
  'pod count': ({ cluster }) => {
    for (const { status } of cluster.nodes) status.allocatable['pods'] = '110';
  },
  'ephemeral storage': withoutResource((name) => name === 'ephemeral-storage'),
  'extended resources': withoutResource((name) => DEVICES.test(name)),
  taints: ({ cluster }) => {
    for (const { spec } of cluster.nodes) delete spec.taints;
  },
  tolerations: onPending((spec) => delete spec.tolerations),
  'node selector': onPending((spec) => delete spec.nodeSelector),
  'node affinity': onPending((spec) => delete spec.affinity?.nodeAffinity),
  'pod affinity': onPending((spec) => delete spec.affinity?.podAffinity),
  'pod anti-affinity': onPending((spec) => delete spec.affinity?.podAntiAffinity),
  'affinity: namespaces': withoutInTerms((term) => delete term.namespaces),
  'affinity: namespace selector': withoutInTerms((term) => delete term.namespaceSelector),
  'affinity: label keys': withoutInTerms(dropTermKeys),
  "existing pods' anti-affinity": ({ cluster }) => {
    for (const { spec } of cluster.pods) delete spec.affinity?.podAntiAffinity;
  },
  'topology spread': onPending((spec) => delete spec.topologySpreadConstraints),
  'spread: minDomains': withoutInSpread((one) => delete one.minDomains),
  'spread: nodeAffinityPolicy': withoutInSpread((one) => delete one.nodeAffinityPolicy),
  'spread: nodeTaintsPolicy': withoutInSpread((one) => delete one.nodeTaintsPolicy),
  'spread: label keys': withoutInSpread(dropSpreadKeys),
  'spread: several constraints': onPending((spec) => {
    if (spec.topologySpreadConstraints !== undefined)
      spec.topologySpreadConstraints = spec.topologySpreadConstraints.slice(0, 1);
  }),
  'host ports': onPending((spec) => {
    for (const one of [...spec.containers, ...(spec.initContainers ?? [])]) delete one.ports;
  }),
  'bound volumes': ({ cluster }) => {
    for (const { spec } of cluster.persistentVolumes)
      if (spec.storageClassName === 'now') delete spec.nodeAffinity;
  },
  'volume zones': ({ cluster }) => {
    for (const { metadata, spec } of cluster.persistentVolumes)
      if (spec.storageClassName === 'now') delete metadata.labels;
  },
  'unbound claims': dropVolumes(isDelayed),
  'class topologies': ({ cluster }) => {
    for (const one of cluster.storageClasses) delete one.allowedTopologies;
  },
  'storage capacity': ({ cluster }) => {
    cluster.csiDrivers = [];
  },
  'attach limits': ({ cluster }) => {
    for (const { spec } of cluster.csiNodes) for (const one of spec.drivers) delete one.allocatable;
  },
  'claims for one pod': ({ cluster }) => {
    for (const { spec } of cluster.persistentVolumeClaims)
      if (spec.accessModes[0] === 'ReadWriteOncePod') spec.accessModes = ['ReadWriteOnce'];
  },
  'shared disks': dropVolumes(
    ({ persistentVolumeClaim, ephemeral }) =>
      persistentVolumeClaim === undefined && ephemeral === undefined,
  ),
  'claims not ready': dropVolumes(
    (volume, pod, edited) =>
      claimOf(volume, pod, edited)?.spec.volumeName === undefined &&
      !isDelayed(volume, pod, edited),
  ),
  unschedulable: ({ cluster }) => {
    for (const { spec } of cluster.nodes) delete spec.unschedulable;
  },
  'node name': onPending((spec) => delete spec.nodeName),
  'terminating pods': ({ cluster }) => {
    for (const { metadata } of cluster.pods) delete metadata.deletionTimestamp;
  },
  'nominated pods': ({ cluster }) => {
    for (const { status } of cluster.pods) delete status?.nominatedNodeName;
  },
  priority: (edited) => {
    for (const { spec } of everyPod(edited)) delete spec.priority;
  },
  'node features': onPending((spec) => {
    delete spec.hostUsers;
    for (const one of [...spec.containers, ...(spec.initContainers ?? [])])
      delete one.restartPolicyRules;
  }),
  'feature gates': (edited) => {
    delete edited.featureGates;
  },
  'ended pods': ({ cluster }) => {
    for (const { status } of cluster.pods) if (status !== undefined) status.phase = 'Running';
  },
};

/** The case without the feature. Undefined if the case does not contain it. */
export function withoutFeature(feature: string, of: Case): Case | undefined {
  const edited = structuredClone(of);
  FEATURES[feature]?.(edited);
  return JSON.stringify(edited) === JSON.stringify(of) ? undefined : edited;
}
