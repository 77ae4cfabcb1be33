// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { type InTreeDiskSource, readInTreeDisk } from '../../model/in-tree-disk.ts';
import type { Labels } from '../../model/labels.ts';
import { persistentVolumeFromKubernetes } from '../../model/persistent-volume.ts';
import { NO_STORAGE } from '../../model/storage-objects.ts';
import { volumeClaimFromKubernetes } from '../../model/volume-claim.ts';
import { StorageState } from '../state/storage-state.ts';
import { unwrap } from '../testing/builders.ts';
import { aClaim, aVolume, boundClaim } from '../testing/storage.ts';
import { attachableOfClaim, attachableOfDisk } from './attachable.ts';

const ZONE = 'topology.kubernetes.io/zone';
const BETA_ZONE = 'failure-domain.beta.kubernetes.io/zone';

function handle(source: InTreeDiskSource, labels: Labels = {}): string | undefined {
  const disk = readInTreeDisk(source);
  return disk && attachableOfDisk(disk, labels)?.name;
}

describe('the CSI handle of a migrated in-tree disk', () => {
  const gce = { gcePersistentDisk: { pdName: 'd' } };
  test.each<[InTreeDiskSource, Labels, string | undefined]>([
    [gce, {}, 'pd.csi.storage.gke.io/projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d'],
    [gce, { [ZONE]: 'eu-a' }, 'pd.csi.storage.gke.io/projects/UNSPECIFIED/zones/eu-a/disks/d'],
    [
      gce,
      { [ZONE]: 'x', [BETA_ZONE]: 'y' },
      'pd.csi.storage.gke.io/projects/UNSPECIFIED/zones/y/disks/d',
    ],
    [
      gce,
      { [ZONE]: 'eu-west1-a__eu-west1-bc' },
      'pd.csi.storage.gke.io/projects/UNSPECIFIED/regions/eu-west1/disks/d',
    ],
    [gce, { [ZONE]: 'eu-west1-a__us-east1-b' }, undefined],
    [{ awsElasticBlockStore: { volumeID: 'vol-1' } }, {}, 'ebs.csi.aws.com/vol-1'],
    [{ awsElasticBlockStore: { volumeID: 'aws://zone/vol-1' } }, {}, 'ebs.csi.aws.com/vol-1'],
    [{ awsElasticBlockStore: { volumeID: 'a/b' } }, {}, 'ebs.csi.aws.com/a/b'],
    [{ cinder: { volumeID: '' } }, {}, undefined],
    [{ iscsi: { iqn: 'q' } }, {}, undefined],
  ])('for %j with labels %j is %s', (source, labels, expected) => {
    expect(handle(source, labels)).toBe(expected);
  });
});

describe('the attachable volume of a claim', () => {
  const storage = new StorageState({
    ...NO_STORAGE,
    volumes: [
      aVolume('pv', { csi: { driver: 'd', volumeHandle: 'h' } }),
      aVolume('driverless', { csi: { driver: '', volumeHandle: 'h' } }),
      aVolume('handleless', { csi: { driver: 'd', volumeHandle: '' } }),
      aVolume('plain'),
      aVolume('disk', { cinder: { volumeID: 'x' } }),
    ].map((one) => unwrap(persistentVolumeFromKubernetes(one))),
    classes: [
      { name: 'local', provisioner: 'd', binding: 'immediate', allowedTopologies: [] },
      { name: 'unprovisioned', provisioner: '', binding: 'immediate', allowedTopologies: [] },
    ],
  });
  const of = (claim: ReturnType<typeof aClaim>): unknown =>
    attachableOfClaim(unwrap(volumeClaimFromKubernetes(claim)), storage)?.name;

  test('is its volume, otherwise one to be provisioned', () => {
    expect(of(boundClaim('c', 'pv'))).toBe('d/h');
    expect(of(boundClaim('c', 'disk'))).toBe('cinder.csi.openstack.org/x');
    expect(of(aClaim('c'))).toBe('d/\u0000default/c');
    expect(of(boundClaim('c', 'gone'))).toBe('d/\u0000default/c');
  });

  test('is undefined if no driver attaches it', () => {
    expect(of(boundClaim('c', 'driverless'))).toBeUndefined();
    expect(of(boundClaim('c', 'handleless'))).toBeUndefined();
    expect(of(boundClaim('c', 'plain'))).toBeUndefined();
    expect(of(aClaim('c', { storageClassName: 'unprovisioned' }))).toBeUndefined();
    expect(of(aClaim('c', { storageClassName: 'gone' }))).toBeUndefined();
  });
});
