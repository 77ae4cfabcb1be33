// SPDX-License-Identifier: Apache-2.0
// What is known of CSI drivers: how much a node may attach, who reports free space, what is attached.

import { accepted, type Parsed, refused } from './parsed.ts';
import { parseQuantity, wholeValue } from './quantity.ts';
import {
  type LabelSelectorSource,
  parseLabelSelector,
  SELECT_NOTHING,
  type Selector,
} from './selector.ts';

export interface CsiNode {
  readonly nodeName: string;
  /** How many volumes of a driver the node may attach; drivers without a limit are not in it. */
  readonly limits: ReadonlyMap<string, number>;
  /** Old plugins whose volumes a driver serves on this node. */
  readonly migratedPlugins: ReadonlySet<string>;
}

export interface CsiStorageCapacity {
  readonly storageClass: string;
  readonly nodes: Selector;
  /** The largest volume that can be made; absent: unknown, so none. */
  readonly largestBytes?: bigint;
}

export interface VolumeAttachment {
  readonly nodeName: string;
  readonly driver: string;
  readonly volumeName: string;
}

/** A CSINode as it comes from the Kubernetes API. */
export interface CsiNodeSource {
  readonly metadata: {
    readonly name: string;
    readonly annotations?: Readonly<Record<string, string>> | null;
  };
  readonly spec?: {
    readonly drivers?:
      | readonly {
          readonly name: string;
          readonly allocatable?: { readonly count?: number | null } | null;
        }[]
      | null;
  } | null;
}

/** A CSIDriver as it comes from the Kubernetes API. */
export interface CsiDriverSource {
  readonly metadata: { readonly name: string };
  readonly spec?: { readonly storageCapacity?: boolean | null } | null;
}

/** A CSIStorageCapacity as it comes from the Kubernetes API. */
export interface CsiStorageCapacitySource {
  readonly storageClassName: string;
  readonly nodeTopology?: LabelSelectorSource | null;
  readonly capacity?: string | number | null;
  readonly maximumVolumeSize?: string | number | null;
}

/** A VolumeAttachment as it comes from the Kubernetes API. */
export interface VolumeAttachmentSource {
  readonly spec: {
    readonly attacher: string;
    readonly nodeName: string;
    readonly source: { readonly persistentVolumeName?: string | null };
  };
}

const MIGRATED_PLUGINS = 'storage.alpha.kubernetes.io/migrated-plugins';

export function csiNodeFromKubernetes(source: CsiNodeSource): CsiNode {
  const limits = (source.spec?.drivers ?? []).flatMap(({ name, allocatable }) =>
    typeof allocatable?.count === 'number' ? [[name, allocatable.count] as const] : [],
  );
  const migrated = source.metadata.annotations?.[MIGRATED_PLUGINS];
  return {
    nodeName: source.metadata.name,
    limits: new Map(limits),
    migratedPlugins: new Set(migrated ? migrated.split(',') : []),
  };
}

/** Names of the drivers that report how much space is left, so that the scheduler heeds it. */
export function reportsCapacity(drivers: readonly CsiDriverSource[]): ReadonlySet<string> {
  return new Set(
    drivers.filter((one) => one.spec?.storageCapacity === true).map((one) => one.metadata.name),
  );
}

export function csiStorageCapacityFromKubernetes(
  source: CsiStorageCapacitySource,
): Parsed<CsiStorageCapacity> {
  const nodes = source.nodeTopology
    ? parseLabelSelector(source.nodeTopology)
    : accepted(SELECT_NOTHING);
  if (!nodes.ok) return refused(`storage capacity: ${nodes.problem}`);
  const largest = source.maximumVolumeSize ?? source.capacity ?? undefined;
  const size = parseQuantity(String(largest ?? '0'));
  if (!size.ok) return refused(`storage capacity: ${size.problem}`);
  return accepted({
    storageClass: source.storageClassName,
    nodes: nodes.value,
    ...(largest !== undefined && { largestBytes: wholeValue(size.value) }),
  });
}

/** Undefined for one that names no driver or no volume. */
export function volumeAttachmentFromKubernetes(
  source: VolumeAttachmentSource,
): VolumeAttachment | undefined {
  const { attacher, nodeName, source: attached } = source.spec;
  const volumeName = attached.persistentVolumeName;
  if (attacher === '' || !volumeName) return undefined;
  return { nodeName, driver: attacher, volumeName };
}
