// SPDX-License-Identifier: Apache-2.0
// Builds a snapshot from Kubernetes objects.

import {
  type CsiDriverSource,
  type CsiNodeSource,
  type CsiStorageCapacitySource,
  csiNodeFromKubernetes,
  csiStorageCapacityFromKubernetes,
  driversReportingCapacity,
  type VolumeAttachmentSource,
  volumeAttachmentFromKubernetes,
} from '../model/csi.ts';
import { type DaemonSetSource, daemonSetFromKubernetes } from '../model/daemon-set.ts';
import type { Labels } from '../model/labels.ts';
import { type NodeSource, nodeFromKubernetes } from '../model/node.ts';
import { accepted, type Parsed } from '../model/parsed.ts';
import {
  type PersistentVolumeSource,
  persistentVolumeFromKubernetes,
} from '../model/persistent-volume.ts';
import { podFromKubernetes } from '../model/pod-from-kubernetes.ts';
import type { PodSource } from '../model/pod-source.ts';
import { type StorageClassSource, storageClassFromKubernetes } from '../model/storage-class.ts';
import type { StorageObjects } from '../model/storage-objects.ts';
import { type VolumeClaimSource, volumeClaimFromKubernetes } from '../model/volume-claim.ts';
import { Snapshot } from './snapshot.ts';
import type { FeatureGates } from './state/feature-gates.ts';

export interface NamespaceSource {
  readonly metadata: { readonly name: string; readonly labels?: Labels | null };
}

/** Lists of objects of the Kubernetes API. Absent lists are empty. */
export interface KubernetesObjects {
  readonly nodes: readonly NodeSource[];
  readonly pods?: readonly PodSource[];
  readonly namespaces?: readonly NamespaceSource[];
  readonly persistentVolumes?: readonly PersistentVolumeSource[];
  readonly persistentVolumeClaims?: readonly VolumeClaimSource[];
  readonly storageClasses?: readonly StorageClassSource[];
  readonly csiNodes?: readonly CsiNodeSource[];
  readonly csiDrivers?: readonly CsiDriverSource[];
  readonly csiStorageCapacities?: readonly CsiStorageCapacitySource[];
  readonly volumeAttachments?: readonly VolumeAttachmentSource[];
  readonly daemonSets?: readonly DaemonSetSource[];
  /** Feature gates of kube-scheduler. Those not listed have the defaults of Kubernetes 1.36. */
  readonly featureGates?: Partial<FeatureGates> | undefined;
}

/** Refused at the first invalid object; the API server accepts none of those. */
export function snapshotFromKubernetes(objects: KubernetesObjects): Parsed<Snapshot> {
  const nodes = readAll(objects.nodes, nodeFromKubernetes);
  if (!nodes.ok) return nodes;
  const pods = readAll(objects.pods, podFromKubernetes);
  if (!pods.ok) return pods;
  const daemonSets = readAll(objects.daemonSets, daemonSetFromKubernetes);
  if (!daemonSets.ok) return daemonSets;
  const storage = readStorage(objects);
  if (!storage.ok) return storage;
  return accepted(
    Snapshot.of({
      nodes: nodes.value,
      pods: pods.value,
      daemonSets: daemonSets.value,
      namespaces: new Map(
        (objects.namespaces ?? []).map(({ metadata }) => [metadata.name, metadata.labels ?? {}]),
      ),
      storage: storage.value,
      featureGates: objects.featureGates,
    }),
  );
}

function readStorage(objects: KubernetesObjects): Parsed<StorageObjects> {
  const volumes = readAll(objects.persistentVolumes, persistentVolumeFromKubernetes);
  if (!volumes.ok) return volumes;
  const claims = readAll(objects.persistentVolumeClaims, volumeClaimFromKubernetes);
  if (!claims.ok) return claims;
  const capacities = readAll(objects.csiStorageCapacities, csiStorageCapacityFromKubernetes);
  if (!capacities.ok) return capacities;
  return accepted({
    volumes: volumes.value,
    claims: claims.value,
    classes: (objects.storageClasses ?? []).map(storageClassFromKubernetes),
    csiNodes: (objects.csiNodes ?? []).map(csiNodeFromKubernetes),
    attachments: (objects.volumeAttachments ?? []).flatMap(
      (one) => volumeAttachmentFromKubernetes(one) ?? [],
    ),
    capacities: capacities.value,
    capacityDrivers: driversReportingCapacity(objects.csiDrivers ?? []),
  });
}

function readAll<S, T>(
  sources: readonly S[] | undefined,
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
