// SPDX-License-Identifier: Apache-2.0
// Which volumes of a pod a CSI driver would attach to a node, identified by a unique name.

import {
  attachLimitDriver,
  csiMigrationOf,
  type InTreeDisk,
  type InTreeDiskKind,
} from '../../model/in-tree-disk.ts';
import type { Labels } from '../../model/labels.ts';
import type { PersistentVolume } from '../../model/persistent-volume.ts';
import type { VolumeClaim } from '../../model/volume-claim.ts';
import type { StorageState } from '../state/storage-state.ts';

export interface AttachableVolume {
  readonly driver: string;
  readonly name: string;
}

const BETA_ZONE = 'failure-domain.beta.kubernetes.io/zone';
const ZONE = 'topology.kubernetes.io/zone';
const ZONE_SEPARATOR = '__';

export function newAttachable(driver: string, handle: string): AttachableVolume {
  return { driver, name: `${driver}/${handle}` };
}

/** Undefined: not counted. A claim without a volume counts as a volume to be provisioned. */
export function attachableOfClaim(
  claim: VolumeClaim,
  storage: StorageState,
): AttachableVolume | undefined {
  const volume = claim.volumeName === '' ? undefined : storage.volume(claim.volumeName);
  return volume === undefined ? attachableOfClass(claim, storage) : attachableOfVolume(volume);
}

function attachableOfClass(
  claim: VolumeClaim,
  storage: StorageState,
): AttachableVolume | undefined {
  const storageClass = storage.storageClass(claim.storageClass);
  if (storageClass === undefined) return undefined;
  const driver = attachLimitDriver(storageClass.provisioner);
  // A prefix that no real volume handle has.
  return driver === undefined || driver === ''
    ? undefined
    : newAttachable(driver, `\u0000${claim.namespace}/${claim.name}`);
}

function attachableOfVolume(volume: PersistentVolume): AttachableVolume | undefined {
  if (volume.csi !== undefined) {
    const { driver, handle } = volume.csi;
    return driver === '' || handle === '' ? undefined : newAttachable(driver, handle);
  }
  return volume.disk === undefined ? undefined : attachableOfDisk(volume.disk, volume.labels);
}

/** An in-tree disk that was migrated to a CSI driver. */
export function attachableOfDisk(disk: InTreeDisk, labels: Labels): AttachableVolume | undefined {
  const migration = csiMigrationOf(disk.kind);
  if (migration === undefined) return undefined;
  const handle = HANDLES[disk.kind]?.(disk.id, labels) ?? disk.id;
  return handle === '' ? undefined : newAttachable(migration.driver, handle);
}

type Handle = (id: string, labels: Labels) => string;

const HANDLES: Partial<Record<InTreeDiskKind, Handle>> = {
  'aws-ebs': (id) => (id.startsWith('aws://') ? (id.split('/').at(-1) ?? id) : id),
  'gce-pd': (id, labels) => gceHandle(id, labels[BETA_ZONE] || labels[ZONE] || ''),
};

function gceHandle(id: string, zoneLabel: string): string {
  const zones = zoneLabel.split(ZONE_SEPARATOR);
  if (zones.length === 1) {
    return `projects/UNSPECIFIED/zones/${zoneLabel || 'UNSPECIFIED'}/disks/${id}`;
  }
  const regions = new Set(zones.map((zone) => zone.replace(/-[^-]*$/, '')));
  // A disk cannot be in zones of several regions.
  return regions.size === 1
    ? `projects/UNSPECIFIED/regions/${[...regions].join('')}/disks/${id}`
    : '';
}
