// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { PodVolumeSource } from '../../model/pod-volume.ts';
import { checkFit } from '../index.ts';
import { aCluster, aPod, type ClusterOptions, type PodOptions } from '../testing/builders.ts';
import { aVolume, boundClaim, using } from '../testing/storage.ts';

function ofFilter(cluster: ClusterOptions, pod: PodOptions, node = 'node-1'): unknown {
  const verdict = checkFit(aCluster(cluster), aPod({ name: 'new', ...pod }), node);
  if (verdict.fits) return undefined;
  return verdict.reasons.find(({ filter }) => filter === 'VolumeRestrictions');
}

function disk(source: Omit<PodVolumeSource, 'name'>): NonNullable<PodOptions['spec']> {
  return { volumes: [{ name: 'v', ...source }] };
}

function collides(
  wanted: Omit<PodVolumeSource, 'name'>,
  taken: Omit<PodVolumeSource, 'name'>,
): boolean {
  const pods = [
    { spec: { nodeName: 'node-1' } },
    { name: 'b', spec: { nodeName: 'node-1', ...disk(taken) } },
  ];
  return ofFilter({ pods }, { spec: disk(wanted) }) !== undefined;
}

describe('VolumeRestrictions', () => {
  describe('an exclusive disk', () => {
    test.each<[Omit<PodVolumeSource, 'name'>, Omit<PodVolumeSource, 'name'>, boolean]>([
      [{ gcePersistentDisk: { pdName: 'd' } }, { gcePersistentDisk: { pdName: 'd' } }, true],
      [{ gcePersistentDisk: { pdName: 'd' } }, { gcePersistentDisk: { pdName: 'e' } }, false],
      [
        { gcePersistentDisk: { pdName: 'd', readOnly: true } },
        { gcePersistentDisk: { pdName: 'd', readOnly: true } },
        false,
      ],
      [
        { gcePersistentDisk: { pdName: 'd', readOnly: true } },
        { gcePersistentDisk: { pdName: 'd' } },
        true,
      ],
      [
        { awsElasticBlockStore: { volumeID: 'd', readOnly: true } },
        { awsElasticBlockStore: { volumeID: 'd', readOnly: true } },
        true,
      ],
      [{ awsElasticBlockStore: { volumeID: 'd' } }, { gcePersistentDisk: { pdName: 'd' } }, false],
      [{ iscsi: { iqn: 'q' } }, { iscsi: { iqn: 'q', readOnly: true } }, true],
      [{ iscsi: { iqn: 'q', readOnly: true } }, { iscsi: { iqn: 'q', readOnly: true } }, false],
      [{ azureDisk: { diskURI: 'u' } }, { azureDisk: { diskURI: 'u' } }, false],
      [
        { rbd: { image: 'i', pool: 'p', monitors: ['m1', 'm2'] } },
        { rbd: { image: 'i', pool: 'p', monitors: ['m2', 'm3'] } },
        true,
      ],
      [
        { rbd: { image: 'i', pool: 'p', monitors: ['m1'] } },
        { rbd: { image: 'i', pool: 'p', monitors: ['m2'] } },
        false,
      ],
      [
        { rbd: { image: 'i', pool: 'p', monitors: ['m1'] } },
        { rbd: { image: 'i', pool: 'q', monitors: ['m1'] } },
        false,
      ],
      [
        { rbd: { image: 'i', pool: 'p', monitors: ['m1'], readOnly: true } },
        { rbd: { image: 'i', pool: 'p', monitors: ['m1'], readOnly: true } },
        false,
      ],
    ])('for %j and %j in use conflicts: %s', (wanted, taken, expected) => {
      expect(collides(wanted, taken)).toBe(expected);
    });

    test('is named in the reason', () => {
      const cluster = {
        pods: [{ spec: { nodeName: 'node-1', ...disk({ iscsi: { iqn: 'q' } }) } }],
      };
      expect(ofFilter(cluster, { spec: disk({ iscsi: { iqn: 'q' } }) })).toEqual({
        filter: 'VolumeRestrictions',
        problem: 'disk-in-use',
        disk: { kind: 'iscsi', id: 'q', isReadOnly: false, pool: '', monitors: [] },
      });
    });

    test('can be used on another node', () => {
      const cluster = {
        nodes: [{}, { name: 'node-2' }],
        pods: [{ spec: { nodeName: 'node-2', ...disk({ iscsi: { iqn: 'q' } }) } }],
      };
      expect(ofFilter(cluster, { spec: disk({ iscsi: { iqn: 'q' } }) })).toBeUndefined();
    });
  });

  describe('a ReadWriteOncePod claim', () => {
    const storage = (mode: string): ClusterOptions => ({
      nodes: [{}, { name: 'node-2' }],
      persistentVolumes: [aVolume('pv')],
      persistentVolumeClaims: [boundClaim('c', 'pv', { accessModes: [mode] })],
    });
    const user = { name: 'user', spec: { nodeName: 'node-2', ...using('c') } };

    test('rejects every node while another pod uses it', () => {
      const cluster = { ...storage('ReadWriteOncePod'), pods: [user] };
      const no = { filter: 'VolumeRestrictions', problem: 'claim-in-use', claim: 'default/c' };
      expect(ofFilter(cluster, { spec: using('c') })).toEqual(no);
      expect(ofFilter(cluster, { spec: using('c') }, 'node-2')).toEqual(no);
      const going = { ...cluster, pods: [{ ...user, terminating: true }] };
      expect(ofFilter(going, { spec: using('c') })).toEqual(no);
    });

    test('is accepted if unused, and other access modes are shared', () => {
      expect(ofFilter(storage('ReadWriteOncePod'), { spec: using('c') })).toBeUndefined();
      const shared = { ...storage('ReadWriteMany'), pods: [user] };
      expect(ofFilter(shared, { spec: using('c') })).toBeUndefined();
      const foreign = { ...storage('ReadWriteOncePod'), pods: [{ ...user, namespace: 'other' }] };
      expect(ofFilter(foreign, { spec: using('c') })).toBeUndefined();
    });

    test('must exist', () => {
      expect(ofFilter({}, { spec: using('gone') })).toEqual({
        filter: 'VolumeRestrictions',
        problem: 'claim-not-found',
        claim: 'default/gone',
      });
    });
  });
});
