// SPDX-License-Identifier: Apache-2.0
// Storage objects for tests.

import type { Labels } from '../../model/labels.ts';
import type { PersistentVolumeSource } from '../../model/persistent-volume.ts';
import type { StorageClassSource } from '../../model/storage-class.ts';
import type { VolumeClaimSource } from '../../model/volume-claim.ts';
import type { PodOptions } from './builders.ts';

type VolumeSpec = NonNullable<PersistentVolumeSource['spec']>;

export function aVolume(
  name: string,
  spec: VolumeSpec = {},
  over: { readonly labels?: Labels; readonly phase?: string } = {},
): PersistentVolumeSource {
  return {
    metadata: { name, labels: over.labels ?? {} },
    spec: {
      capacity: { storage: '10Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'local',
      ...spec,
    },
    status: { phase: over.phase ?? 'Available' },
  };
}

export function inZone(...zones: string[]): VolumeSpec {
  return {
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [
          {
            matchExpressions: [
              { key: 'topology.kubernetes.io/zone', operator: 'In', values: zones },
            ],
          },
        ],
      },
    },
  };
}

type ClaimSpec = NonNullable<VolumeClaimSource['spec']>;

export function aClaim(
  name: string,
  spec: ClaimSpec = {},
  metadata: Partial<VolumeClaimSource['metadata']> = {},
): VolumeClaimSource {
  return {
    metadata: { name, namespace: 'default', uid: `uid-${name}`, ...metadata },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'local',
      resources: { requests: { storage: '5Gi' } },
      ...spec,
    },
    status: { phase: 'Pending' },
  };
}

export const BOUND = { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } };

/** A claim that is bound to a volume. */
export function boundClaim(
  name: string,
  volumeName: string,
  spec: ClaimSpec = {},
): VolumeClaimSource {
  return aClaim(name, { volumeName, ...spec }, BOUND);
}

export function aClass(name: string, over: Partial<StorageClassSource> = {}): StorageClassSource {
  return {
    metadata: { name },
    provisioner: 'kubernetes.io/no-provisioner',
    volumeBindingMode: 'WaitForFirstConsumer',
    ...over,
  };
}

export function using(...claims: string[]): NonNullable<PodOptions['spec']> {
  return {
    volumes: claims.map((claimName, i) => ({
      name: `v${i}`,
      persistentVolumeClaim: { claimName },
    })),
  };
}
