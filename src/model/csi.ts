// SPDX-License-Identifier: Apache-2.0
// CSI drivers: attach limits per node, reported free space, attached volumes.

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
  /** Maximum attached volumes per driver. A driver without a limit has no entry. */
  readonly limits: ReadonlyMap<string, number>;
  /** In-tree plugins whose volumes a CSI driver serves on this node. */
  readonly migratedPlugins: ReadonlySet<string>;
}

export interface CsiStorageCapacity {
  readonly storageClass: string;
  readonly nodes: Selector;
  /** Size of the largest volume that can be provisioned. Absent: unknown, so nothing fits. */
  readonly largestBytes?: bigint;
}

export interface VolumeAttachment {
  readonly nodeName: string;
  readonly driver: string;
  readonly volumeName: string;
}

/** A CSINode object of the Kubernetes API. */
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

/** A CSIDriver object of the Kubernetes API. */
export interface CsiDriverSource {
  readonly metadata: { readonly name: string };
  readonly spec?: { readonly storageCapacity?: boolean | null } | null;
}

/** A CSIStorageCapacity object of the Kubernetes API. */
export interface CsiStorageCapacitySource {
  readonly storageClassName: string;
  readonly nodeTopology?: LabelSelectorSource | null;
  readonly capacity?: string | number | null;
  readonly maximumVolumeSize?: string | number | null;
}

/** A VolumeAttachment object of the Kubernetes API. */
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

/** Names of the drivers whose reported capacity the scheduler checks. */
export function driversReportingCapacity(drivers: readonly CsiDriverSource[]): ReadonlySet<string> {
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

/** Returns undefined when the attachment names no driver or no volume. */
export function volumeAttachmentFromKubernetes(
  source: VolumeAttachmentSource,
): VolumeAttachment | undefined {
  const { attacher, nodeName, source: attached } = source.spec;
  const volumeName = attached.persistentVolumeName;
  if (attacher === '' || !volumeName) return undefined;
  return { nodeName, driver: attacher, volumeName };
}
