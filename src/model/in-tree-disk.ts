// SPDX-License-Identifier: Apache-2.0
// Disks of the storage systems that Kubernetes once served itself. Two pods may not hold the same one on a
// node, and those that moved to a CSI driver count towards that driver's attach limit.

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
  /** Name, volume id, URI, IQN or image, whatever the system calls it. */
  readonly id: string;
  readonly isReadOnly: boolean;
  /** Ceph only. */
  readonly pool: string;
  readonly monitors: readonly string[];
}

interface ReadOnlySource {
  readonly readOnly?: boolean | null;
}

/** The sources of a volume or of a PersistentVolume as they come from the Kubernetes API. */
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

export function inTreeDisk(source: InTreeDiskSource): InTreeDisk | undefined {
  const { rbd } = source;
  if (rbd) {
    return {
      ...plain('rbd', rbd.image, rbd),
      pool: rbd.pool ?? '',
      monitors: rbd.monitors ?? [],
    };
  }
  return cloudDisk(source) ?? otherDisk(source);
}

function cloudDisk(source: InTreeDiskSource): InTreeDisk | undefined {
  const { awsElasticBlockStore: ebs, gcePersistentDisk: gce, azureDisk } = source;
  if (ebs) return plain('aws-ebs', ebs.volumeID, ebs);
  if (gce) return plain('gce-pd', gce.pdName, gce);
  return azureDisk ? plain('azure-disk', azureDisk.diskURI, azureDisk) : undefined;
}

function otherDisk({ cinder, portworxVolume, iscsi }: InTreeDiskSource): InTreeDisk | undefined {
  if (cinder) return plain('cinder', cinder.volumeID, cinder);
  if (portworxVolume) return plain('portworx-volume', portworxVolume.volumeID, portworxVolume);
  return iscsi ? plain('iscsi', iscsi.iqn, iscsi) : undefined;
}

function plain(kind: InTreeDiskKind, id: string, source: ReadOnlySource): InTreeDisk {
  return { kind, id, isReadOnly: source.readOnly ?? false, pool: '', monitors: [] };
}

const SHARED_WHEN_READ_ONLY: readonly InTreeDiskKind[] = ['gce-pd', 'iscsi', 'rbd'];

/** Whether two pods on one node cannot both have these. */
export function disksCollide(left: InTreeDisk, right: InTreeDisk): boolean {
  if (left.kind !== right.kind || left.id !== right.id) return false;
  if (left.kind === 'aws-ebs') return true;
  if (!SHARED_WHEN_READ_ONLY.includes(left.kind)) return false;
  if (left.isReadOnly && right.isReadOnly) return false;
  return left.kind !== 'rbd' || isSameCeph(left, right);
}

function isSameCeph(left: InTreeDisk, right: InTreeDisk): boolean {
  return left.pool === right.pool && left.monitors.some((one) => right.monitors.includes(one));
}

interface Successor {
  readonly driver: string;
  /** The node label by which the driver knows zones; absent: it keeps Kubernetes' own. */
  readonly zoneKey?: string;
}

const SUCCESSORS: ReadonlyMap<string, Successor> = new Map<string, Successor>([
  ['aws-ebs', { driver: 'ebs.csi.aws.com', zoneKey: 'topology.ebs.csi.aws.com/zone' }],
  ['gce-pd', { driver: 'pd.csi.storage.gke.io', zoneKey: 'topology.gke.io/zone' }],
  ['azure-disk', { driver: 'disk.csi.azure.com' }],
  [
    'cinder',
    { driver: 'cinder.csi.openstack.org', zoneKey: 'topology.cinder.csi.openstack.org/zone' },
  ],
  ['portworx-volume', { driver: 'pxd.portworx.com' }],
]);

// These moved as well, but the scheduler does not count what they attach.
const UNCOUNTED: readonly string[] = ['azure-file', 'vsphere-volume'];

const PREFIX = 'kubernetes.io/';

/** The name by which CSINodes and storage classes call the old plugin. */
export function inTreePluginName(kind: InTreeDiskKind): string {
  return `${PREFIX}${kind}`;
}

export function csiSuccessor(kind: InTreeDiskKind): Successor | undefined {
  return SUCCESSORS.get(kind);
}

/** The driver that provisions for a storage class; undefined: attachments of it are not counted. */
export function countedDriver(provisioner: string): string | undefined {
  if (!provisioner.startsWith(PREFIX)) return provisioner;
  const plugin = provisioner.slice(PREFIX.length);
  if (UNCOUNTED.includes(plugin)) return undefined;
  return SUCCESSORS.get(plugin)?.driver ?? provisioner;
}
