// SPDX-License-Identifier: Apache-2.0
// The storage objects of a cluster that decide where pods with volumes can run.

import type { CsiNode, CsiStorageCapacity, VolumeAttachment } from './csi.ts';
import type { PersistentVolume } from './persistent-volume.ts';
import type { StorageClass } from './storage-class.ts';
import type { VolumeClaim } from './volume-claim.ts';

export interface StorageObjects {
  readonly volumes: readonly PersistentVolume[];
  readonly claims: readonly VolumeClaim[];
  readonly classes: readonly StorageClass[];
  readonly csiNodes: readonly CsiNode[];
  readonly attachments: readonly VolumeAttachment[];
  readonly capacities: readonly CsiStorageCapacity[];
  /** Drivers whose reported capacity is checked. */
  readonly capacityDrivers: ReadonlySet<string>;
}

export const NO_STORAGE: StorageObjects = {
  volumes: [],
  claims: [],
  classes: [],
  csiNodes: [],
  attachments: [],
  capacities: [],
  capacityDrivers: new Set(),
};
