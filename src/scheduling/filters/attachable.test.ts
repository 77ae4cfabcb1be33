// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { type InTreeDiskSource, inTreeDisk } from '../../model/in-tree-disk.ts';
import type { Labels } from '../../model/labels.ts';
import { persistentVolumeFromKubernetes } from '../../model/persistent-volume.ts';
import { volumeClaimFromKubernetes } from '../../model/volume-claim.ts';
import { NO_STORAGE, Storage } from '../state/storage.ts';
import { value } from '../testing/builders.ts';
import { aClaim, aVolume, boundClaim } from '../testing/storage.ts';
import { attachableDisk, attachableOfClaim } from './attachable.ts';

const ZONE = 'topology.kubernetes.io/zone';
const BETA_ZONE = 'failure-domain.beta.kubernetes.io/zone';

function handle(source: InTreeDiskSource, labels: Labels = {}): string | undefined {
  const disk = inTreeDisk(source);
  return disk && attachableDisk(disk, labels)?.name;
}

describe('what a driver calls a disk of the plugin it replaced', () => {
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
  ])('%j in %j: %s', (source, labels, expected) => {
    expect(handle(source, labels)).toBe(expected);
  });
});

describe('what a claim would attach', () => {
  const storage = new Storage({
    ...NO_STORAGE,
    volumes: [
      aVolume('pv', { csi: { driver: 'd', volumeHandle: 'h' } }),
      aVolume('driverless', { csi: { driver: '', volumeHandle: 'h' } }),
      aVolume('handleless', { csi: { driver: 'd', volumeHandle: '' } }),
      aVolume('plain'),
      aVolume('disk', { cinder: { volumeID: 'x' } }),
    ].map((one) => value(persistentVolumeFromKubernetes(one))),
    classes: [
      { name: 'local', provisioner: 'd', binding: 'immediate', allowedTopologies: [] },
      { name: 'nobody', provisioner: '', binding: 'immediate', allowedTopologies: [] },
    ],
  });
  const of = (claim: ReturnType<typeof aClaim>): unknown =>
    attachableOfClaim(value(volumeClaimFromKubernetes(claim)), storage)?.name;

  test('its volume, else one that is still to be made', () => {
    expect(of(boundClaim('c', 'pv'))).toBe('d/h');
    expect(of(boundClaim('c', 'disk'))).toBe('cinder.csi.openstack.org/x');
    expect(of(aClaim('c'))).toBe('d/\u0000default/c');
    expect(of(boundClaim('c', 'gone'))).toBe('d/\u0000default/c');
  });

  test('nothing, where nobody would attach it', () => {
    expect(of(boundClaim('c', 'driverless'))).toBeUndefined();
    expect(of(boundClaim('c', 'handleless'))).toBeUndefined();
    expect(of(boundClaim('c', 'plain'))).toBeUndefined();
    expect(of(aClaim('c', { storageClassName: 'nobody' }))).toBeUndefined();
    expect(of(aClaim('c', { storageClassName: 'gone' }))).toBeUndefined();
  });
});
