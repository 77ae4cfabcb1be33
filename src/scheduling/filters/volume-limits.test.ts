// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { checkFit } from '../index.ts';
import { aCluster, aPod, type ClusterOptions, type PodOptions } from '../testing/builders.ts';
import { aClaim, aClass, aVolume, boundClaim, using } from '../testing/storage.ts';

const DRIVER = 'disk.example.com';

function csiVolume(name: string, handle = name): ReturnType<typeof aVolume> {
  return aVolume(name, { csi: { driver: DRIVER, volumeHandle: handle } });
}

function limited(count: number | null, driver = DRIVER): ClusterOptions {
  return {
    csiNodes: [
      {
        metadata: { name: 'node-1' },
        spec: { drivers: [{ name: driver, allocatable: count === null ? null : { count } }] },
      },
    ],
    persistentVolumes: ['1', '2', '3'].map((n) => csiVolume(`pv${n}`)),
    persistentVolumeClaims: ['1', '2', '3'].map((n) => boundClaim(`c${n}`, `pv${n}`)),
  };
}

function running(...claims: string[]): readonly PodOptions[] {
  return [{ name: 'running', spec: { nodeName: 'node-1', ...using(...claims) } }];
}

function ofFilter(cluster: ClusterOptions, spec: NonNullable<PodOptions['spec']>): unknown {
  const verdict = checkFit(aCluster(cluster), aPod({ name: 'new', spec }), 'node-1');
  if (verdict.fits) return undefined;
  return verdict.reasons.find(({ filter }) => filter === 'NodeVolumeLimits');
}

describe('NodeVolumeLimits', () => {
  test('rejects more volumes than the attach limit', () => {
    expect(ofFilter({ ...limited(3), pods: running('c1') }, using('c2', 'c3'))).toBeUndefined();
    expect(ofFilter({ ...limited(2), pods: running('c1') }, using('c2', 'c3'))).toEqual({
      filter: 'NodeVolumeLimits',
      problem: 'too-many',
      driver: DRIVER,
      attached: 1,
      adding: 2,
      limit: 2,
    });
  });

  test('accepts any number without a limit or without a CSINode', () => {
    expect(ofFilter({ ...limited(null), pods: running('c1') }, using('c2'))).toBeUndefined();
    expect(ofFilter({ ...limited(1, 'other') }, using('c1', 'c2'))).toBeUndefined();
    expect(ofFilter({ ...limited(0), csiNodes: [] }, using('c1'))).toBeUndefined();
  });

  test('counts the same volume once', () => {
    expect(ofFilter({ ...limited(1), pods: running('c1') }, using('c1'))).toBeUndefined();
    const twins = {
      ...limited(1),
      persistentVolumes: [csiVolume('pv1', 'same'), csiVolume('pv2', 'same')],
    };
    expect(ofFilter(twins, using('c1', 'c2'))).toBeUndefined();
    expect(ofFilter({ ...twins, pods: running('c1') }, using('c2'))).toBeUndefined();
  });

  test('applies a separate limit per driver', () => {
    const mixed: ClusterOptions = {
      csiNodes: [
        {
          metadata: { name: 'node-1' },
          spec: {
            drivers: [
              { name: DRIVER, allocatable: { count: 2 } },
              { name: 'b', allocatable: { count: 1 } },
              { name: 'unlimited' },
            ],
          },
        },
      ],
      persistentVolumes: [
        csiVolume('pv1'),
        csiVolume('pv2'),
        aVolume('pv3', { csi: { driver: 'b', volumeHandle: 'h' } }),
        aVolume('pv4', { csi: { driver: 'unlimited', volumeHandle: 'h' } }),
        aVolume('pv5', { csi: { driver: 'b', volumeHandle: 'i' } }),
      ],
      persistentVolumeClaims: ['1', '2', '3', '4', '5'].map((n) => boundClaim(`c${n}`, `pv${n}`)),
    };
    expect(ofFilter({ ...mixed, pods: running('c1') }, using('c2', 'c3', 'c4'))).toBeUndefined();
    expect(ofFilter({ ...mixed, pods: running('c1', 'c3') }, using('c2', 'c5'))).toEqual({
      filter: 'NodeVolumeLimits',
      problem: 'too-many',
      driver: 'b',
      attached: 1,
      adding: 1,
      limit: 1,
    });
  });

  test('ignores attachments of volumes without a handle', () => {
    const cluster: ClusterOptions = {
      ...limited(1),
      persistentVolumes: [csiVolume('pv1'), aVolume('local')],
      volumeAttachments: [
        {
          spec: { attacher: DRIVER, nodeName: 'node-1', source: { persistentVolumeName: 'local' } },
        },
      ],
    };
    expect(ofFilter(cluster, using('c1'))).toBeUndefined();
  });

  test('counts claims without a volume by their class', () => {
    const cluster = {
      ...limited(1),
      storageClasses: [aClass('local', { provisioner: DRIVER })],
      persistentVolumeClaims: [aClaim('c1'), aClaim('c2')],
    };
    expect(ofFilter(cluster, using('c1'))).toBeUndefined();
    expect(ofFilter(cluster, using('c1', 'c2'))).toMatchObject({ adding: 2 });
    expect(ofFilter({ ...cluster, pods: running('c1') }, using('c2'))).toMatchObject({
      attached: 1,
    });
    expect(ofFilter({ ...cluster, storageClasses: [] }, using('c1', 'c2'))).toBeUndefined();
    const prebound = {
      ...cluster,
      persistentVolumeClaims: [aClaim('c1', { volumeName: 'gone' }), aClaim('c2')],
    };
    expect(ofFilter(prebound, using('c1', 'c2'))).toMatchObject({ adding: 2 });
  });

  test('rejects a pending pod with a missing claim and ignores missing claims of running pods', () => {
    expect(ofFilter(limited(9), using('gone'))).toEqual({
      filter: 'NodeVolumeLimits',
      problem: 'claim-not-found',
      claim: 'default/gone',
    });
    expect(ofFilter({ ...limited(1), pods: running('gone') }, using('c1'))).toBeUndefined();
  });

  test('counts volumes that are still attached, and again if the pod uses them', () => {
    const attachment = (volume: string | null, attacher = DRIVER): object => ({
      spec: { attacher, nodeName: 'node-1', source: { persistentVolumeName: volume } },
    });
    const withLeft = (...left: object[]): ClusterOptions => ({
      ...limited(2),
      volumeAttachments: left as NonNullable<ClusterOptions['volumeAttachments']>,
    });
    expect(ofFilter(withLeft(attachment('pv1'), attachment('pv2')), using('c3'))).toMatchObject({
      attached: 2,
    });
    expect(ofFilter(withLeft(attachment('pv1'), attachment('pv1')), using('c3'))).toBeUndefined();
    expect(
      ofFilter({ ...withLeft(attachment('pv1')), pods: running('c1') }, using('c2')),
    ).toBeUndefined();
    expect(ofFilter(withLeft(attachment('pv1'), attachment('pv2')), using('c1'))).toMatchObject({
      attached: 2,
    });
    expect(
      ofFilter(
        withLeft(attachment(null), attachment('gone'), attachment('pv1', '')),
        using('c1', 'c2'),
      ),
    ).toBeUndefined();
  });

  describe('in-tree disks', () => {
    const gce = (name: string): NonNullable<PodOptions['spec']> => ({
      volumes: [{ name: 'v', gcePersistentDisk: { pdName: name, readOnly: true } }],
    });
    const limit = limited(1, 'pd.csi.storage.gke.io');

    test('count towards the limit of their CSI driver', () => {
      const pods = [{ name: 'running', spec: { nodeName: 'node-1', ...gce('d1') } }];
      expect(ofFilter({ ...limit, pods }, gce('d2'))).toMatchObject({
        driver: 'pd.csi.storage.gke.io',
        attached: 1,
      });
      expect(ofFilter({ ...limit, pods }, gce('d1'))).toBeUndefined();
    });

    test('of PersistentVolumes count with their zone', () => {
      const inZone = (zone: string): ClusterOptions => ({
        ...limit,
        persistentVolumes: [
          aVolume(
            'pv1',
            { gcePersistentDisk: { pdName: 'd1' } },
            { labels: { 'topology.kubernetes.io/zone': zone } },
          ),
        ],
        pods: [{ name: 'running', spec: { nodeName: 'node-1', ...gce('d1') } }],
      });
      expect(ofFilter(inZone('z'), using('c1'))).toMatchObject({ attached: 1, adding: 1 });
      expect(ofFilter(inZone(''), using('c1'))).toBeUndefined();
      expect(ofFilter(inZone('eu-a__us-b'), using('c1'))).toBeUndefined();
      expect(ofFilter(inZone('eu-a__eu-b'), using('c1'))).toMatchObject({ adding: 1 });
    });

    test.each([
      ['ebs.csi.aws.com', { awsElasticBlockStore: { volumeID: 'aws://zone/vol-1' } }, 'vol-1'],
      ['cinder.csi.openstack.org', { cinder: { volumeID: 'x' } }, 'x'],
      ['disk.csi.azure.com', { azureDisk: { diskURI: 'u' } }, 'u'],
      ['pxd.portworx.com', { portworxVolume: { volumeID: 'p' } }, 'p'],
    ])('have the same handle as %s', (driver, source, handle) => {
      const cluster = {
        ...limited(1, driver),
        persistentVolumes: [
          aVolume('pv1', { csi: { driver, volumeHandle: handle } }),
          aVolume('pv2', source),
        ],
      };
      expect(ofFilter(cluster, using('c1', 'c2'))).toBeUndefined();
      expect(
        ofFilter({ ...cluster, csiNodes: limited(0, driver).csiNodes ?? [] }, using('c2')),
      ).toMatchObject({ adding: 1 });
    });

    test('of plugins without migration do not count', () => {
      expect(
        ofFilter(limited(0, 'iscsi'), { volumes: [{ name: 'v', iscsi: { iqn: 'q' } }] }),
      ).toBeUndefined();
      const local = { ...limited(0), persistentVolumes: [aVolume('pv1')] };
      expect(ofFilter(local, using('c1'))).toBeUndefined();
    });

    test.each([
      ['kubernetes.io/aws-ebs', 'ebs.csi.aws.com', true],
      ['kubernetes.io/azure-file', 'file.csi.azure.com', false],
      ['kubernetes.io/vsphere-volume', 'csi.vsphere.vmware.com', false],
      ['', '', false],
    ])('count claims of provisioner %s towards %s: %s', (provisioner, driver, isCounted) => {
      const cluster = {
        ...limited(0, driver),
        storageClasses: [aClass('local', { provisioner })],
        persistentVolumeClaims: [aClaim('c1')],
      };
      expect(ofFilter(cluster, using('c1')) !== undefined).toBe(isCounted);
    });
  });

  describe('claims of ephemeral volumes', () => {
    const ephemeral = { volumes: [{ name: 'e', ephemeral: {} }] };
    const owned = (pod: string, uid: string): ReturnType<typeof aClaim> =>
      aClaim(`${pod}-e`, {}, { ownerReferences: [{ uid, controller: true }] });
    const cluster = {
      ...limited(0),
      storageClasses: [aClass('local', { provisioner: DRIVER })],
    };

    test('count, and must be owned by the pod', () => {
      const own = { ...cluster, persistentVolumeClaims: [owned('new', 'uid-default-new')] };
      expect(ofFilter(own, ephemeral)).toMatchObject({ problem: 'too-many' });
      const foreign = { ...cluster, persistentVolumeClaims: [owned('new', 'other-pod')] };
      expect(ofFilter(foreign, ephemeral)).toEqual({
        filter: 'NodeVolumeLimits',
        problem: 'claim-of-another-pod',
        claim: 'default/new-e',
      });
    });

    test('are not confused with disks of running pods', () => {
      const pods = [
        {
          name: 'running',
          spec: { nodeName: 'node-1', volumes: [{ name: 'v', iscsi: { iqn: 'q' } }] },
        },
      ];
      expect(ofFilter({ ...limited(1), pods }, using('c1'))).toBeUndefined();
      const two = [...pods, { name: 'b', spec: { nodeName: 'node-1', ...using('gone') } }];
      expect(ofFilter({ ...limited(1), pods: two }, using('c1'))).toBeUndefined();
    });

    test('of a running pod that does not own them reject the node', () => {
      const pods = [{ name: 'running', spec: { nodeName: 'node-1', ...ephemeral } }];
      const mixed = {
        ...limited(9),
        pods,
        persistentVolumeClaims: [boundClaim('c1', 'pv1'), owned('running', 'other-pod')],
      };
      expect(ofFilter(mixed, using('c1'))).toMatchObject({
        problem: 'claim-of-another-pod',
        claim: 'default/running-e',
      });
    });
  });
});
