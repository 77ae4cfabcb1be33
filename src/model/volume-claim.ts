// SPDX-License-Identifier: Apache-2.0
// A PersistentVolumeClaim: the storage that a pod requests, and whether it is bound.

import type { Labels } from './labels.ts';
import { accepted, type Parsed, refused } from './parsed.ts';
import { CLASS_ANNOTATION } from './persistent-volume.ts';
import { parseQuantity } from './quantity.ts';
import { type LabelSelectorSource, parseLabelSelector, type Selector } from './selector.ts';

export interface VolumeClaim {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** UID of the pod that the claim was created for. Empty: none. */
  readonly ownerUid: string;
  readonly storageClass: string;
  readonly attributesClass: string;
  /** Empty: none yet. */
  readonly volumeName: string;
  /** Claim and volume reference each other. Until then `volumeName` is only a preference. */
  readonly isBindCompleted: boolean;
  /** The node for which it is to be provisioned. Absent: not chosen. */
  readonly selectedNode?: string;
  readonly isLost: boolean;
  readonly isTerminating: boolean;
  readonly accessModes: readonly string[];
  readonly mode: string;
  /** In units of 10⁻⁹ bytes. Absent: no size is requested. */
  readonly requestNano?: bigint;
  /** Absent: any volume. */
  readonly selector?: Selector;
}

interface OwnerSource {
  readonly uid: string;
  readonly controller?: boolean | null;
}

/** A PersistentVolumeClaim object of the Kubernetes API. */
export interface VolumeClaimSource {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string | null;
    readonly uid?: string | null;
    readonly annotations?: Labels | null;
    readonly deletionTimestamp?: string | null;
    readonly ownerReferences?: readonly OwnerSource[] | null;
  };
  readonly spec?: {
    readonly accessModes?: readonly string[] | null;
    readonly volumeMode?: string | null;
    readonly volumeName?: string | null;
    readonly storageClassName?: string | null;
    readonly volumeAttributesClassName?: string | null;
    readonly selector?: LabelSelectorSource | null;
    readonly resources?: {
      readonly requests?: Readonly<Record<string, string | number>> | null;
    } | null;
  } | null;
  readonly status?: { readonly phase?: string | null } | null;
}

const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed';
const SELECTED_NODE = 'volume.kubernetes.io/selected-node';

export function volumeClaimFromKubernetes(source: VolumeClaimSource): Parsed<VolumeClaim> {
  const { metadata, spec } = source;
  const requested = readRequestedStorage(spec ?? {});
  if (!requested.ok) return refused(`claim '${metadata.name}': ${requested.problem}`);
  const annotations = metadata.annotations ?? {};
  const selectedNode = annotations[SELECTED_NODE];
  return accepted({
    ...readIdentity(metadata),
    storageClass: annotations[CLASS_ANNOTATION] ?? spec?.storageClassName ?? '',
    volumeName: spec?.volumeName ?? '',
    isBindCompleted: Object.hasOwn(annotations, BIND_COMPLETED),
    ...(selectedNode !== undefined && { selectedNode }),
    isLost: source.status?.phase === 'Lost',
    ...requested.value,
  });
}

function readIdentity(
  metadata: VolumeClaimSource['metadata'],
): Pick<VolumeClaim, 'namespace' | 'name' | 'uid' | 'ownerUid' | 'isTerminating'> {
  const owner = metadata.ownerReferences?.find((one) => one.controller === true);
  return {
    namespace: metadata.namespace ?? 'default',
    name: metadata.name,
    uid: metadata.uid ?? '',
    ownerUid: owner?.uid ?? '',
    isTerminating: Boolean(metadata.deletionTimestamp),
  };
}

type RequestedStorage = Pick<
  VolumeClaim,
  'attributesClass' | 'accessModes' | 'mode' | 'requestNano' | 'selector'
>;

function readRequestedStorage(
  spec: NonNullable<VolumeClaimSource['spec']>,
): Parsed<RequestedStorage> {
  const size = spec.resources?.requests?.['storage'];
  const request = parseQuantity(String(size ?? '0'));
  if (!request.ok) return request;
  const selector = parseLabelSelector(spec.selector);
  if (!selector.ok) return selector;
  return accepted({
    attributesClass: spec.volumeAttributesClassName ?? '',
    accessModes: spec.accessModes ?? [],
    mode: spec.volumeMode ?? 'Filesystem',
    ...(size !== undefined && { requestNano: request.value.nano }),
    ...(spec.selector && { selector: selector.value }),
  });
}
