// SPDX-License-Identifier: Apache-2.0
// Disks of storage systems with an in-tree volume plugin. Two pods on a node may not use the same disk. Disks
// that were migrated to a CSI driver count towards that driver's attach limit.

export type InTreeDiskKind =
  | 'aws-ebs'
  | 'gce-pd'
  | 'azure-disk'
  | 'cinder'
  | 'portworx-volume'
  | 'iscsi'
  | 'rbd';

export interface InTreeDisk {
  readonly kind: InTreeDiskKind;
  /** Name, volume id, URI, IQN or image, depending on the storage system. */
  readonly id: string;
  readonly isReadOnly: boolean;
  /** Ceph only; so are `monitors`. */
  readonly pool: string;
  readonly monitors: readonly string[];
}

interface ReadOnlySource {
  readonly readOnly?: boolean | null;
}

/** The in-tree sources of a volume or PersistentVolume object of the Kubernetes API. */
export interface InTreeDiskSource {
  readonly awsElasticBlockStore?: (ReadOnlySource & { readonly volumeID: string }) | null;
  readonly gcePersistentDisk?: (ReadOnlySource & { readonly pdName: string }) | null;
  readonly azureDisk?: (ReadOnlySource & { readonly diskURI: string }) | null;
  readonly cinder?: (ReadOnlySource & { readonly volumeID: string }) | null;
  readonly portworxVolume?: (ReadOnlySource & { readonly volumeID: string }) | null;
  readonly iscsi?: (ReadOnlySource & { readonly iqn: string }) | null;
  readonly rbd?:
    | (ReadOnlySource & {
        readonly image: string;
        readonly pool?: string | null;
        readonly monitors?: readonly string[] | null;
      })
    | null;
}

export function readInTreeDisk(source: InTreeDiskSource): InTreeDisk | undefined {
  const { rbd } = source;
  if (rbd) {
    return {
      ...newDisk('rbd', rbd.image, rbd),
      pool: rbd.pool ?? '',
      monitors: rbd.monitors ?? [],
    };
  }
  return cloudDisk(source) ?? otherDisk(source);
}

function cloudDisk(source: InTreeDiskSource): InTreeDisk | undefined {
  const { awsElasticBlockStore: ebs, gcePersistentDisk: gce, azureDisk } = source;
  if (ebs) return newDisk('aws-ebs', ebs.volumeID, ebs);
  if (gce) return newDisk('gce-pd', gce.pdName, gce);
  return azureDisk ? newDisk('azure-disk', azureDisk.diskURI, azureDisk) : undefined;
}

function otherDisk({ cinder, portworxVolume, iscsi }: InTreeDiskSource): InTreeDisk | undefined {
  if (cinder) return newDisk('cinder', cinder.volumeID, cinder);
  if (portworxVolume) return newDisk('portworx-volume', portworxVolume.volumeID, portworxVolume);
  return iscsi ? newDisk('iscsi', iscsi.iqn, iscsi) : undefined;
}

function newDisk(kind: InTreeDiskKind, id: string, source: ReadOnlySource): InTreeDisk {
  return { kind, id, isReadOnly: source.readOnly ?? false, pool: '', monitors: [] };
}

const SHARED_WHEN_READ_ONLY: readonly InTreeDiskKind[] = ['gce-pd', 'iscsi', 'rbd'];

/** Whether its kind can conflict with the disk of another pod. */
export function isExclusiveDisk({ kind }: InTreeDisk): boolean {
  return kind === 'aws-ebs' || SHARED_WHEN_READ_ONLY.includes(kind);
}

/** Whether two pods on one node must not both use these disks. */
export function disksConflict(left: InTreeDisk, right: InTreeDisk): boolean {
  if (left.kind !== right.kind || left.id !== right.id) return false;
  if (!isExclusiveDisk(left)) return false;
  if (left.kind === 'aws-ebs') return true;
  if (left.isReadOnly && right.isReadOnly) return false;
  return left.kind !== 'rbd' || isSameCephPool(left, right);
}

function isSameCephPool(left: InTreeDisk, right: InTreeDisk): boolean {
  return left.pool === right.pool && left.monitors.some((one) => right.monitors.includes(one));
}

interface CsiMigration {
  readonly driver: string;
  /** The node label that holds the driver's zone. Absent: the driver keeps Kubernetes' own label. */
  readonly zoneKey?: string;
}

const CSI_MIGRATIONS: ReadonlyMap<string, CsiMigration> = new Map<string, CsiMigration>([
  ['aws-ebs', { driver: 'ebs.csi.aws.com', zoneKey: 'topology.ebs.csi.aws.com/zone' }],
  ['gce-pd', { driver: 'pd.csi.storage.gke.io', zoneKey: 'topology.gke.io/zone' }],
  ['azure-disk', { driver: 'disk.csi.azure.com' }],
  [
    'cinder',
    { driver: 'cinder.csi.openstack.org', zoneKey: 'topology.cinder.csi.openstack.org/zone' },
  ],
  ['portworx-volume', { driver: 'pxd.portworx.com' }],
]);

// These were migrated too, but the scheduler does not count their attachments.
const UNCOUNTED_PLUGINS: readonly string[] = ['azure-file', 'vsphere-volume'];

const PREFIX = 'kubernetes.io/';

/** The plugin name used in CSINodes and storage classes. */
export function inTreePluginName(kind: InTreeDiskKind): string {
  return `${PREFIX}${kind}`;
}

export function csiMigrationOf(kind: InTreeDiskKind): CsiMigration | undefined {
  return CSI_MIGRATIONS.get(kind);
}

/** The driver whose attach limit a storage class counts towards. Undefined: its attachments are not counted. */
export function attachLimitDriver(provisioner: string): string | undefined {
  if (!provisioner.startsWith(PREFIX)) return provisioner;
  const plugin = provisioner.slice(PREFIX.length);
  if (UNCOUNTED_PLUGINS.includes(plugin)) return undefined;
  return CSI_MIGRATIONS.get(plugin)?.driver ?? provisioner;
}
