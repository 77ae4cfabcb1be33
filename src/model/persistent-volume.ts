// SPDX-License-Identifier: Apache-2.0
// A PersistentVolume: which nodes can reach it, and which claim it is reserved for.

import { type InTreeDisk, type InTreeDiskSource, readInTreeDisk } from './in-tree-disk.ts';
import type { Labels } from './labels.ts';
import {
  type NodeSelector,
  type NodeSelectorTermSource,
  readNodeSelector,
} from './node-selector.ts';
import { accepted, type Parsed, refused } from './parsed.ts';
import { parseQuantity } from './quantity.ts';

export interface ClaimRef {
  readonly namespace: string;
  readonly name: string;
  /** Empty: reserved by name only. */
  readonly uid: string;
}

export interface PersistentVolume {
  readonly name: string;
  readonly labels: Labels;
  /** Absent: reachable from every node. */
  readonly nodeAffinity?: NodeSelector;
  readonly storageClass: string;
  readonly attributesClass: string;
  /** In units of 10⁻⁹ bytes, so that comparing with a claim is exact. */
  readonly capacityNano: bigint;
  readonly accessModes: readonly string[];
  readonly mode: string;
  readonly claimRef?: ClaimRef;
  readonly isAvailable: boolean;
  readonly isTerminating: boolean;
  readonly csi?: { readonly driver: string; readonly handle: string };
  readonly disk?: InTreeDisk;
}

/** A PersistentVolume object of the Kubernetes API. */
export interface PersistentVolumeSource {
  readonly metadata: {
    readonly name: string;
    readonly labels?: Labels | null;
    readonly annotations?: Labels | null;
    readonly deletionTimestamp?: string | null;
  };
  readonly spec?:
    | (InTreeDiskSource & {
        readonly capacity?: Readonly<Record<string, string | number>> | null;
        readonly accessModes?: readonly string[] | null;
        readonly volumeMode?: string | null;
        readonly storageClassName?: string | null;
        readonly volumeAttributesClassName?: string | null;
        readonly claimRef?: {
          readonly namespace?: string | null;
          readonly name?: string | null;
          readonly uid?: string | null;
        } | null;
        readonly nodeAffinity?: {
          readonly required?: {
            readonly nodeSelectorTerms?: readonly NodeSelectorTermSource[] | null;
          } | null;
        } | null;
        readonly csi?: { readonly driver: string; readonly volumeHandle: string } | null;
      })
    | null;
  readonly status?: { readonly phase?: string | null } | null;
}

/** Older objects name their class in this annotation. It takes precedence over the field. */
export const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';

export function persistentVolumeFromKubernetes(
  source: PersistentVolumeSource,
): Parsed<PersistentVolume> {
  const { metadata } = source;
  const spec = source.spec ?? {};
  const capacity = parseQuantity(String(spec.capacity?.['storage'] ?? '0'));
  if (!capacity.ok) return refused(`volume '${metadata.name}': ${capacity.problem}`);
  return accepted({
    name: metadata.name,
    labels: metadata.labels ?? {},
    storageClass: metadata.annotations?.[CLASS_ANNOTATION] ?? spec.storageClassName ?? '',
    capacityNano: capacity.value.nano,
    isAvailable: source.status?.phase === 'Available',
    isTerminating: Boolean(metadata.deletionTimestamp),
    ...readProperties(spec),
    ...readReferences(spec),
  });
}

function readProperties(
  spec: NonNullable<PersistentVolumeSource['spec']>,
): Pick<PersistentVolume, 'attributesClass' | 'accessModes' | 'mode'> {
  return {
    attributesClass: spec.volumeAttributesClassName ?? '',
    accessModes: spec.accessModes ?? [],
    mode: spec.volumeMode ?? 'Filesystem',
  };
}

function readReferences(
  spec: NonNullable<PersistentVolumeSource['spec']>,
): Pick<PersistentVolume, 'nodeAffinity' | 'claimRef' | 'csi' | 'disk'> {
  const { nodeAffinity, claimRef, csi } = spec;
  const disk = readInTreeDisk(spec);
  return {
    ...(nodeAffinity?.required && {
      nodeAffinity: readNodeSelector(nodeAffinity.required.nodeSelectorTerms ?? []),
    }),
    ...(claimRef && { claimRef: readClaimRef(claimRef) }),
    ...(csi && { csi: { driver: csi.driver, handle: csi.volumeHandle } }),
    ...(disk && { disk }),
  };
}

function readClaimRef(source: {
  readonly namespace?: string | null;
  readonly name?: string | null;
  readonly uid?: string | null;
}): ClaimRef {
  return {
    namespace: source.namespace ?? '',
    name: source.name ?? '',
    uid: source.uid ?? '',
  };
}
