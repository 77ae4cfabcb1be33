// SPDX-License-Identifier: Apache-2.0
// The collections that are watched beside Nodes and Pods, reduced to the fields that simulated scheduling and evictions read.
//
// Controllers other than DaemonSets are not among them: a pod's owner reference says which controller creates it again, and
// the garbage collector deletes a pod or its reference when that controller is gone. Priority classes are not either: the
// API server resolves them into `spec.priority` when it admits a pod.
import {
  type CsiDriverSource,
  type CsiNode,
  type CsiNodeSource,
  type CsiStorageCapacity,
  csiNodeFromKubernetes,
  csiStorageCapacityFromKubernetes,
  type VolumeAttachment,
  type VolumeAttachmentSource,
  volumeAttachmentFromKubernetes,
} from '../model/csi.ts';
import { type DaemonSet, daemonSetFromKubernetes } from '../model/daemon-set.ts';
import {
  type DisruptionBudget,
  disruptionBudgetFromKubernetes,
} from '../model/disruption-budget.ts';
import type { Labels } from '../model/labels.ts';
import { accepted, type Parsed } from '../model/parsed.ts';
import {
  type PersistentVolume,
  persistentVolumeFromKubernetes,
} from '../model/persistent-volume.ts';
import {
  type StorageClass,
  type StorageClassSource,
  storageClassFromKubernetes,
} from '../model/storage-class.ts';
import { type VolumeClaim, volumeClaimFromKubernetes } from '../model/volume-claim.ts';
import type { WorkloadObjects } from '../ports/cluster.ts';
import type { Interner } from './interner.ts';
import type { Reflector } from './watch/reflector.ts';

interface Namespace {
  readonly name: string;
  readonly labels: Labels;
}

export interface WorkloadReflectors {
  readonly daemonSets: Reflector<DaemonSet>;
  readonly disruptionBudgets: Reflector<DisruptionBudget>;
  readonly namespaces: Reflector<Namespace>;
  readonly volumes: Reflector<PersistentVolume>;
  readonly claims: Reflector<VolumeClaim>;
  readonly classes: Reflector<StorageClass>;
  readonly csiNodes: Reflector<CsiNode>;
  /** Names of the drivers whose reported capacity is checked. */
  readonly capacityDrivers: Reflector<string>;
  readonly capacities: Reflector<CsiStorageCapacity>;
  readonly attachments: Reflector<VolumeAttachment>;
}

/**
 * `parse` receives objects of the type that the path determines, and returns undefined for one that needs no place in the
 * cache.
 */
export type CreateReflector = <T>(
  path: string,
  parse: (source: never) => Parsed<T | undefined>,
) => Reflector<T>;

const STORAGE = '/apis/storage.k8s.io/v1';

export function createWorkloadReflectors(
  create: CreateReflector,
  interner: Interner,
): WorkloadReflectors {
  return {
    daemonSets: create<DaemonSet>('/apis/apps/v1/daemonsets', daemonSetFromKubernetes),
    disruptionBudgets: create<DisruptionBudget>(
      '/apis/policy/v1/poddisruptionbudgets',
      disruptionBudgetFromKubernetes,
    ),
    namespaces: create<Namespace>('/api/v1/namespaces', ({ metadata }: NamespaceSource) =>
      accepted({ name: metadata.name, labels: metadata.labels ?? {} }),
    ),
    volumes: create<PersistentVolume>('/api/v1/persistentvolumes', persistentVolumeFromKubernetes),
    claims: create<VolumeClaim>('/api/v1/persistentvolumeclaims', volumeClaimFromKubernetes),
    classes: create<StorageClass>(`${STORAGE}/storageclasses`, (source: StorageClassSource) =>
      accepted(storageClassFromKubernetes(source)),
    ),
    csiNodes: create<CsiNode>(`${STORAGE}/csinodes`, (source: CsiNodeSource) =>
      accepted(csiNodeFromKubernetes(source)),
    ),
    capacityDrivers: create<string>(
      `${STORAGE}/csidrivers`,
      ({ metadata, spec }: CsiDriverSource) =>
        accepted(spec?.storageCapacity === true ? metadata.name : undefined),
    ),
    capacities: create<CsiStorageCapacity>(
      `${STORAGE}/csistoragecapacities`,
      csiStorageCapacityFromKubernetes,
    ),
    attachments: create<VolumeAttachment>(
      `${STORAGE}/volumeattachments`,
      (source: VolumeAttachmentSource) => {
        const attachment = volumeAttachmentFromKubernetes(source);
        return accepted(
          attachment && { ...attachment, nodeName: interner.internText(attachment.nodeName) },
        );
      },
    ),
  };
}

interface NamespaceSource {
  readonly metadata: { readonly name: string; readonly labels?: Labels | null };
}

export function readWorkloads(reflectors: WorkloadReflectors): WorkloadObjects {
  return {
    daemonSets: reflectors.daemonSets.values(),
    disruptionBudgets: reflectors.disruptionBudgets.values(),
    namespaces: new Map(reflectors.namespaces.values().map(({ name, labels }) => [name, labels])),
    storage: {
      volumes: reflectors.volumes.values(),
      claims: reflectors.claims.values(),
      classes: reflectors.classes.values(),
      csiNodes: reflectors.csiNodes.values(),
      attachments: reflectors.attachments.values(),
      capacities: reflectors.capacities.values(),
      capacityDrivers: new Set(reflectors.capacityDrivers.values()),
    },
  };
}
