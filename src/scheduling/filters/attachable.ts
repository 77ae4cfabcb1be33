// SPDX-License-Identifier: Apache-2.0
// Which volumes of a pod a CSI driver would attach to a node, each by a name that is the same for the same
// volume.

import {
  countedDriver,
  csiSuccessor,
  type InTreeDisk,
  type InTreeDiskKind,
} from '../../model/in-tree-disk.ts';
import type { Labels } from '../../model/labels.ts';
import type { PersistentVolume } from '../../model/persistent-volume.ts';
import type { VolumeClaim } from '../../model/volume-claim.ts';
import type { Storage } from '../state/storage.ts';

export interface Attachable {
  readonly driver: string;
  readonly name: string;
}

const BETA_ZONE = 'failure-domain.beta.kubernetes.io/zone';
const ZONE = 'topology.kubernetes.io/zone';
const ZONE_SEPARATOR = '__';

export function attachable(driver: string, handle: string): Attachable {
  return { driver, name: `${driver}/${handle}` };
}

/** Undefined: nothing that is counted. A claim without a volume counts as one that is still to be made. */
export function attachableOfClaim(claim: VolumeClaim, storage: Storage): Attachable | undefined {
  const volume = claim.volumeName === '' ? undefined : storage.volume(claim.volumeName);
  return volume === undefined ? ofClass(claim, storage) : ofVolume(volume);
}

function ofClass(claim: VolumeClaim, storage: Storage): Attachable | undefined {
  const storageClass = storage.storageClass(claim.storageClass);
  if (storageClass === undefined) return undefined;
  const driver = countedDriver(storageClass.provisioner);
  // No handle of a real volume begins like this.
  return driver === undefined || driver === ''
    ? undefined
    : attachable(driver, `\u0000${claim.namespace}/${claim.name}`);
}

function ofVolume(volume: PersistentVolume): Attachable | undefined {
  if (volume.csi !== undefined) {
    const { driver, handle } = volume.csi;
    return driver === '' || handle === '' ? undefined : attachable(driver, handle);
  }
  return volume.disk === undefined ? undefined : attachableDisk(volume.disk, volume.labels);
}

/** A disk of an old plugin that a CSI driver serves by now. */
export function attachableDisk(disk: InTreeDisk, labels: Labels): Attachable | undefined {
  const successor = csiSuccessor(disk.kind);
  if (successor === undefined) return undefined;
  const handle = HANDLES[disk.kind]?.(disk.id, labels) ?? disk.id;
  return handle === '' ? undefined : attachable(successor.driver, handle);
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
  // Zones of several regions make no volume at all.
  return regions.size === 1
    ? `projects/UNSPECIFIED/regions/${[...regions].join('')}/disks/${id}`
    : '';
}
