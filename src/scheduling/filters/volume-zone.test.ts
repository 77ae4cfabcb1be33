// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { Labels } from '../../model/labels.ts';
import { checkFit } from '../index.ts';
import { aCluster, aPod, type ClusterOptions } from '../testing/builders.ts';
import { aClaim, aClass, aVolume, boundClaim, using } from '../testing/storage.ts';

const ZONE = 'topology.kubernetes.io/zone';
const REGION = 'topology.kubernetes.io/region';
const BETA_ZONE = 'failure-domain.beta.kubernetes.io/zone';
const BETA_REGION = 'failure-domain.beta.kubernetes.io/region';

function ofFilter(cluster: ClusterOptions): unknown {
  const verdict = checkFit(aCluster(cluster), aPod({ spec: using('c') }), 'node-1');
  if (verdict.fits) return undefined;
  return verdict.reasons.find(({ filter }) => filter === 'VolumeZone');
}

function reasonFor(volume: Labels, node: Labels): unknown {
  return ofFilter({
    nodes: [{ labels: node }],
    persistentVolumes: [aVolume('pv', {}, { labels: volume })],
    persistentVolumeClaims: [boundClaim('c', 'pv')],
  });
}

describe('VolumeZone', () => {
  test.each<[Labels, Labels, boolean]>([
    [{ [ZONE]: 'a' }, { [ZONE]: 'a' }, true],
    [{ [ZONE]: 'a' }, { [ZONE]: 'b' }, false],
    [{ [ZONE]: 'a__b' }, { [ZONE]: 'b' }, true],
    [{ [ZONE]: 'a__ b ' }, { [ZONE]: 'b' }, true],
    [{ [ZONE]: 'a__' }, { [ZONE]: 'b' }, true],
    [{ [ZONE]: 'a' }, {}, true],
    [{ [ZONE]: 'a' }, { [REGION]: 'r' }, false],
    [{}, { [ZONE]: 'a' }, true],
    [{ [REGION]: 'r' }, { [REGION]: 'r', [ZONE]: 'z' }, true],
    [{ [REGION]: 'r' }, { [REGION]: 's' }, false],
    [{ [BETA_ZONE]: 'a' }, { [ZONE]: 'a' }, true],
    [{ [BETA_ZONE]: 'a' }, { [ZONE]: 'b' }, false],
    [{ [BETA_ZONE]: 'a' }, { [BETA_ZONE]: 'a' }, true],
    [{ [BETA_ZONE]: 'a' }, { [BETA_ZONE]: 'b', [ZONE]: 'a' }, false],
    [{ [ZONE]: 'a' }, { [BETA_ZONE]: 'a' }, false],
    [{ [BETA_REGION]: 'r' }, { [REGION]: 'r' }, true],
    [{ [BETA_REGION]: 'r' }, { [BETA_REGION]: 's' }, false],
    [{ [ZONE]: 'a', [REGION]: 'r' }, { [ZONE]: 'a', [REGION]: 's' }, false],
  ])('for volume labels %j and node labels %j returns %s', (volume, node, isFine) => {
    expect(reasonFor(volume, node) === undefined).toBe(isFine);
  });

  test('returns the volume and its zones in the reason', () => {
    expect(reasonFor({ [ZONE]: 'a__b' }, { [ZONE]: 'c' })).toEqual({
      filter: 'VolumeZone',
      problem: 'other-zone',
      volume: 'pv',
      topologyKey: ZONE,
      required: ['a', 'b'],
    });
  });

  describe('a claim without a volume', () => {
    const problem = (claim: ReturnType<typeof aClaim>, classes = [aClass('local')]): unknown =>
      ofFilter({ persistentVolumeClaims: [claim], storageClasses: classes });

    test('is ignored if its class waits for the first consumer', () => {
      expect(problem(aClaim('c'))).toBeUndefined();
    });

    test('otherwise rejects the pod on every node', () => {
      const no = (what: string): object => ({
        filter: 'VolumeZone',
        problem: what,
        claim: 'default/c',
      });
      expect(problem(aClaim('c', { storageClassName: '' }))).toEqual(no('claim-without-class'));
      expect(problem(aClaim('c', { storageClassName: 'gone' }))).toEqual(no('class-not-found'));
      expect(problem(aClaim('c'), [aClass('local', { volumeBindingMode: 'Immediate' })])).toEqual(
        no('claim-unbound'),
      );
      expect(problem(aClaim('c'), [aClass('local', { volumeBindingMode: null })])).toEqual(
        no('class-without-binding-mode'),
      );
      expect(problem(aClaim('c', { volumeName: 'gone' }))).toEqual(no('volume-not-found'));
      expect(problem(aClaim('other'))).toEqual(no('claim-not-found'));
    });
  });

  test('ignores claims of ephemeral volumes', () => {
    const pod = aPod({ spec: { volumes: [{ name: 'e', ephemeral: {} }] } });
    const verdict = checkFit(aCluster(), pod, 'node-1');
    expect(!verdict.fits && verdict.reasons.some(({ filter }) => filter === 'VolumeZone')).toBe(
      false,
    );
  });
});
