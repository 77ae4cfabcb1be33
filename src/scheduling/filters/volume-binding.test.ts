// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { VolumeClaimSource } from '../../model/volume-claim.ts';
import { checkFit } from '../index.ts';
import { aCluster, aPod, type ClusterOptions, type PodOptions, ZONE } from '../testing/builders.ts';
import { aClaim, aClass, aVolume, BOUND, boundClaim, inZone, using } from '../testing/storage.ts';

const NODES = [
  { name: 'a', zone: 'a' },
  { name: 'b', zone: 'b' },
];

function ofFilter(cluster: ClusterOptions, spec = using('c'), node = 'a'): unknown {
  const verdict = checkFit(aCluster({ nodes: NODES, ...cluster }), aPod({ spec }), node);
  if (verdict.fits) return undefined;
  return verdict.reasons.find(({ filter }) => filter === 'VolumeBinding');
}

function where(cluster: ClusterOptions, spec?: NonNullable<PodOptions['spec']>): readonly string[] {
  return NODES.map(({ name }) => name).filter(
    (name) => ofFilter(cluster, spec, name) === undefined,
  );
}

function no(problem: string, claim = 'default/c'): object {
  return { filter: 'VolumeBinding', problem, claim };
}

describe('VolumeBinding of bound claims', () => {
  test('requires a node that reaches the volume', () => {
    const cluster = {
      persistentVolumes: [aVolume('pv', inZone('a'))],
      persistentVolumeClaims: [boundClaim('c', 'pv')],
    };
    expect(where(cluster)).toEqual(['a']);
    expect(ofFilter(cluster, using('c'), 'b')).toEqual(no('node-conflict'));
  });

  test("matches a volume's affinity by labels, never by node name", () => {
    const named = aVolume('pv', {
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['elsewhere'] }] },
          ],
        },
      },
    });
    expect(
      where({ persistentVolumes: [named], persistentVolumeClaims: [boundClaim('c', 'pv')] }),
    ).toEqual(['a', 'b']);
  });

  test("rejects every node if the volume's affinity has no terms", () => {
    const nowhere = aVolume('pv', { nodeAffinity: { required: {} } });
    expect(
      where({ persistentVolumes: [nowhere], persistentVolumeClaims: [boundClaim('c', 'pv')] }),
    ).toEqual([]);
  });

  test('rejects a claim whose volume does not exist', () => {
    expect(ofFilter({ persistentVolumeClaims: [boundClaim('c', 'pv')] })).toEqual(
      no('volume-not-found'),
    );
  });
});

describe('VolumeBinding rejects every node for a claim', () => {
  const problem = (claim: VolumeClaimSource, cluster: ClusterOptions = {}): unknown =>
    ofFilter({
      storageClasses: [aClass('local'), aClass('now', { volumeBindingMode: 'Immediate' })],
      persistentVolumes: [aVolume('pv')],
      ...cluster,
      persistentVolumeClaims: [claim],
    });

  test.each<[string, VolumeClaimSource, string]>([
    ['that is missing', aClaim('other'), 'claim-not-found'],
    ['that is lost', { ...boundClaim('c', 'pv'), status: { phase: 'Lost' } }, 'claim-lost'],
    [
      'that is being deleted',
      aClaim('c', { volumeName: 'pv' }, { ...BOUND, deletionTimestamp: 'now' }),
      'claim-terminating',
    ],
    [
      'that is unbound with immediate binding',
      aClaim('c', { storageClassName: 'now' }),
      'claim-unbound',
    ],
    ['without a class', aClaim('c', { storageClassName: null }), 'claim-unbound'],
    ['of a class that does not exist', aClaim('c', { storageClassName: 'gone' }), 'claim-unbound'],
    ['that names a volume but is not bound', aClaim('c', { volumeName: 'pv' }), 'claim-unbound'],
    [
      'with the bind-completed annotation but without a volume',
      aClaim('c', { storageClassName: 'now' }, BOUND),
      'claim-unbound',
    ],
  ])('%s', (_, claim, expected) => {
    expect(problem(claim)).toEqual(no(expected));
  });

  test('of a class without a binding mode', () => {
    const classes = { storageClasses: [aClass('local', { volumeBindingMode: null })] };
    expect(problem(aClaim('c'), classes)).toEqual(no('class-without-binding-mode'));
  });

  test('whose class is given by the annotation, which takes precedence', () => {
    const old = aClaim(
      'c',
      { storageClassName: 'local' },
      { annotations: { 'volume.beta.kubernetes.io/storage-class': 'now' } },
    );
    expect(problem(old)).toEqual(no('claim-unbound'));
  });

  test('that was created for another pod', () => {
    const spec = { volumes: [{ name: 'e', ephemeral: {} }] };
    const owned = (uid: string): ClusterOptions => ({
      storageClasses: [aClass('local', { provisioner: 'csi' })],
      persistentVolumeClaims: [
        aClaim('pod-e', {}, { ownerReferences: [{ uid, controller: true }] }),
      ],
    });
    expect(ofFilter(owned('uid-default-pod'), spec)).toBeUndefined();
    expect(ofFilter(owned('other'), spec)).toEqual(no('claim-of-another-pod', 'default/pod-e'));
    const unowned = { ...owned(''), persistentVolumeClaims: [aClaim('pod-e')] };
    expect(ofFilter(unowned, spec)).toEqual(no('claim-of-another-pod', 'default/pod-e'));
    expect(ofFilter({}, spec)).toEqual(no('claim-not-found', 'default/pod-e'));
  });
});

describe('VolumeBinding of claims that wait for their first consumer', () => {
  const cluster = (
    volumes: ClusterOptions['persistentVolumes'],
    ...claims: VolumeClaimSource[]
  ): ClusterOptions => ({
    storageClasses: [aClass('local')],
    persistentVolumes: volumes ?? [],
    persistentVolumeClaims: claims.length === 0 ? [aClaim('c')] : claims,
  });

  test('accepts a node that reaches a free volume', () => {
    expect(where(cluster([aVolume('pv', inZone('b'))]))).toEqual(['b']);
    expect(ofFilter(cluster([]))).toEqual(no('no-volume'));
  });

  test.each<[string, ReturnType<typeof aVolume>, VolumeClaimSource, boolean]>([
    ['that is too small', aVolume('pv', { capacity: { storage: '4Gi' } }), aClaim('c'), false],
    [
      'that is exactly large enough',
      aVolume('pv', { capacity: { storage: '5Gi' } }),
      aClaim('c'),
      true,
    ],
    ['of another class', aVolume('pv', { storageClassName: 'x' }), aClaim('c'), false],
    ['that is in use', aVolume('pv', {}, { phase: 'Bound' }), aClaim('c'), false],
    ['of another volume mode', aVolume('pv', { volumeMode: 'Block' }), aClaim('c'), false],
    [
      'of the same block mode',
      aVolume('pv', { volumeMode: 'Block' }),
      aClaim('c', { volumeMode: 'Block' }),
      true,
    ],
    [
      'of another access mode',
      aVolume('pv'),
      aClaim('c', { accessModes: ['ReadWriteMany'] }),
      false,
    ],
    [
      'with more access modes',
      aVolume('pv', { accessModes: ['ReadWriteOnce', 'ReadWriteMany'] }),
      aClaim('c'),
      true,
    ],
    [
      'of another attributes class',
      aVolume('pv', { volumeAttributesClassName: 'fast' }),
      aClaim('c'),
      false,
    ],
    [
      'of the same attributes class',
      aVolume('pv', { volumeAttributesClassName: 'fast' }),
      aClaim('c', { volumeAttributesClassName: 'fast' }),
      true,
    ],
    [
      'that is being deleted',
      { ...aVolume('pv'), metadata: { name: 'pv', deletionTimestamp: 'now' } },
      aClaim('c'),
      false,
    ],
    [
      'that the selector excludes',
      aVolume('pv'),
      aClaim('c', { selector: { matchLabels: { x: 'y' } } }),
      false,
    ],
    [
      'selected',
      aVolume('pv', {}, { labels: { x: 'y' } }),
      aClaim('c', { selector: { matchLabels: { x: 'y' } } }),
      true,
    ],
    [
      'reserved for another claim',
      aVolume('pv', { claimRef: { namespace: 'default', name: 'other' } }),
      aClaim('c'),
      false,
    ],
    [
      'reserved for a claim in another namespace',
      aVolume('pv', { claimRef: { namespace: 'x', name: 'c' } }),
      aClaim('c'),
      false,
    ],
    [
      'reserved by name',
      aVolume('pv', { claimRef: { namespace: 'default', name: 'c' } }, { phase: 'Released' }),
      aClaim('c'),
      true,
    ],
    [
      'reserved by uid',
      aVolume('pv', { claimRef: { namespace: 'default', name: 'c', uid: 'uid-c' } }),
      aClaim('c'),
      true,
    ],
    [
      'reserved for an older claim of the same name',
      aVolume('pv', { claimRef: { namespace: 'default', name: 'c', uid: 'old' } }),
      aClaim('c'),
      false,
    ],
    ['for a claim without size', aVolume('pv'), aClaim('c', { resources: null }), true],
  ])('with a volume %s', (...[, volume, claim, isFine]) => {
    expect(ofFilter(cluster([volume], claim)) === undefined).toBe(isFine);
  });

  test('accepts no other volume if one is reserved for the claim elsewhere', () => {
    const volumes = [
      aVolume('mine', { ...inZone('b'), claimRef: { namespace: 'default', name: 'c' } }),
      aVolume('free'),
    ];
    expect(where(cluster(volumes))).toEqual(['b']);
  });

  test('needs two volumes for two claims', () => {
    const claims = [aClaim('c'), aClaim('d')];
    expect(where(cluster([aVolume('pv')], ...claims), using('c', 'd'))).toEqual([]);
    expect(where(cluster([aVolume('pv'), aVolume('pv2')], ...claims), using('c', 'd'))).toEqual([
      'a',
      'b',
    ]);
  });

  test('binds small claims first, since they may have no alternative', () => {
    const size = (storage: string): object => ({ resources: { requests: { storage } } });
    const volumes = [
      aVolume('only', { capacity: { storage: '10Gi' } }, { labels: { only: 'd' } }),
      aVolume('other', { capacity: { storage: '20Gi' } }),
    ];
    const picky = { selector: { matchLabels: { only: 'd' } } };
    const claims = [aClaim('c', size('5Gi')), aClaim('d', { ...size('1Gi'), ...picky })];
    expect(where(cluster(volumes, ...claims), using('c', 'd'))).toEqual(['a', 'b']);
    expect(where(cluster(volumes, ...claims), using('d', 'c'))).toEqual(['a', 'b']);
    const modest = [aClaim('c', size('5Gi')), aClaim('d', { ...picky, resources: null })];
    expect(where(cluster(volumes, ...modest), using('c', 'd'))).toEqual(['a', 'b']);
    expect(where(cluster(volumes, ...modest), using('d', 'c'))).toEqual(['a', 'b']);
    // In the other order the small claim would find no volume.
    const large = [aClaim('c', size('5Gi')), aClaim('d', { ...size('6Gi'), ...picky })];
    expect(where(cluster(volumes, ...large), using('d', 'c'))).toEqual([]);
  });

  test('finds volumes for large and small claims', () => {
    const size = (storage: string): object => ({ resources: { requests: { storage } } });
    const volumes = [
      aVolume('large', { capacity: { storage: '50Gi' } }),
      aVolume('small', { capacity: { storage: '10Gi' } }),
    ];
    const claims = [aClaim('c', size('40Gi')), aClaim('d', size('1Gi'))];
    expect(where(cluster(volumes, ...claims), using('c', 'd'))).toEqual(['a', 'b']);
    expect(where(cluster(volumes.toReversed(), ...claims), using('c', 'd'))).toEqual(['a', 'b']);
  });

  describe('VolumeBinding with provisioning', () => {
    const provisioned = (over: Parameters<typeof aClass>[1] = {}): ClusterOptions => ({
      storageClasses: [aClass('local', { provisioner: 'csi.example', ...over })],
      persistentVolumeClaims: [aClaim('c')],
    });
    const topology = (...terms: object[][]): Parameters<typeof aClass>[1] => ({
      allowedTopologies: terms.map((matchLabelExpressions) => ({
        matchLabelExpressions: matchLabelExpressions as { key: string; values: string[] }[],
      })),
    });

    test('accepts a node on which a volume can be provisioned', () => {
      expect(where(provisioned())).toEqual(['a', 'b']);
      expect(ofFilter(provisioned({ provisioner: '' }))).toEqual(no('no-volume'));
    });

    test('accepts only topologies that the class allows', () => {
      const inB = [{ key: ZONE, values: ['b', 'c'] }];
      expect(where(provisioned(topology(inB)))).toEqual(['b']);
      expect(where(provisioned(topology([{ key: 'gone', values: ['x'] }], inB)))).toEqual(['b']);
      expect(where(provisioned(topology([])))).toEqual([]);
      expect(ofFilter(provisioned(topology([])))).toEqual(no('no-volume'));
      expect(where(provisioned(topology([...inB, { key: 'gone', values: ['x'] }])))).toEqual([]);
    });

    test('accepts only the node that was selected for the claim', () => {
      const claim = aClaim('c', {}, { annotations: { 'volume.kubernetes.io/selected-node': 'b' } });
      const cluster = { ...provisioned(), persistentVolumeClaims: [claim] };
      expect(where(cluster)).toEqual(['b']);
      expect(ofFilter(cluster)).toEqual(no('other-node-selected'));
      // Once provisioning has begun, a free volume is not used any more.
      const local = {
        ...cluster,
        storageClasses: [aClass('local')],
        persistentVolumes: [aVolume('pv')],
      };
      expect(where(local)).toEqual([]);
    });

    test('accepts only nodes with enough capacity if the driver reports capacity', () => {
      const space = (over: object = {}): object => ({
        storageClassName: 'local',
        nodeTopology: { matchLabels: { [ZONE]: 'a' } },
        capacity: '5Gi',
        ...over,
      });
      const cluster = (drivers: boolean | null, ...capacities: object[]): ClusterOptions => ({
        ...provisioned(),
        csiDrivers: [{ metadata: { name: 'csi.example' }, spec: { storageCapacity: drivers } }],
        csiStorageCapacities: capacities as NonNullable<ClusterOptions['csiStorageCapacities']>,
      });
      expect(where(cluster(true, space()))).toEqual(['a']);
      expect(ofFilter(cluster(true, space()), using('c'), 'b')).toEqual(no('no-space'));
      expect(where(cluster(false, space()))).toEqual(['a', 'b']);
      expect(where(cluster(null))).toEqual(['a', 'b']);
      expect(where(cluster(true, space({ capacity: '4Gi' })))).toEqual([]);
      expect(where(cluster(true, space({ capacity: '9Gi', maximumVolumeSize: '4Gi' })))).toEqual(
        [],
      );
      expect(where(cluster(true, space({ storageClassName: 'x' })))).toEqual([]);
      expect(where(cluster(true, space({ nodeTopology: null })))).toEqual([]);
      expect(where(cluster(true, space({ capacity: null })))).toEqual([]);
      expect(where(cluster(true, space({ nodeTopology: {} })))).toEqual(['a', 'b']);
      const noSize = { ...cluster(true), persistentVolumeClaims: [aClaim('c', { resources: {} })] };
      expect(where(noSize)).toEqual(['a', 'b']);
    });
  });
});

describe('VolumeBinding of migrated in-tree volumes', () => {
  const EBS_ZONE = 'topology.ebs.csi.aws.com/zone';
  const migrated = (
    volume: ReturnType<typeof aVolume>,
    plugin = 'kubernetes.io/aws-ebs',
  ): ClusterOptions => ({
    nodes: [
      { name: 'a', labels: { [EBS_ZONE]: 'a' } },
      { name: 'b', labels: { [EBS_ZONE]: 'b', 'topology.kubernetes.io/region': 'r' } },
    ],
    csiNodes: ['a', 'b'].map((name) => ({
      metadata: {
        name,
        annotations: { 'storage.alpha.kubernetes.io/migrated-plugins': `x,${plugin}` },
      },
    })),
    persistentVolumes: [volume],
    persistentVolumeClaims: [boundClaim('c', 'pv')],
  });
  const ebs = { awsElasticBlockStore: { volumeID: 'vol-1' } };
  const affine = (...requirements: [string, string][]): object => ({
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [
          {
            matchExpressions: requirements.map(([key, zone]) => ({
              key,
              operator: 'In',
              values: [zone],
            })),
          },
        ],
      },
    },
  });

  test("uses the CSI driver's zone label", () => {
    expect(where(migrated(aVolume('pv', { ...ebs, ...inZone('b') })))).toEqual(['b']);
    expect(where(migrated(aVolume('pv', { ...ebs, ...inZone('b') }), 'other'))).toEqual([]);
    const beta = affine(
      ['failure-domain.beta.kubernetes.io/zone', 'b'],
      ['failure-domain.beta.kubernetes.io/region', 'r'],
    );
    expect(where(migrated(aVolume('pv', { ...ebs, ...beta })))).toEqual(['b']);
    // The zone of the affinity counts, even if it has other names beside it.
    const beside = { labels: { 'failure-domain.beta.kubernetes.io/zone': 'a' } };
    expect(where(migrated(aVolume('pv', { ...ebs, ...inZone('b') }, beside)))).toEqual(['b']);
    const both = affine([ZONE, 'b'], ['failure-domain.beta.kubernetes.io/region', 'r']);
    expect(where(migrated(aVolume('pv', { ...ebs, ...both })))).toEqual([]);
  });

  test("uses the zone in the volume's labels if it has no affinity", () => {
    const labelled = (labels: Record<string, string>, spec = {}): ClusterOptions =>
      migrated(aVolume('pv', { ...ebs, ...spec }, { labels }));
    expect(where(labelled({ [ZONE]: 'a__' }))).toEqual(['a']);
    expect(where(labelled({ 'failure-domain.beta.kubernetes.io/zone': 'b' }))).toEqual(['b']);
    expect(where(labelled({ [ZONE]: 'a', 'failure-domain.beta.kubernetes.io/zone': 'b' }))).toEqual(
      ['a'],
    );
    expect(where(labelled({}))).toEqual(['a', 'b']);
    const region = affine(['topology.kubernetes.io/region', 'r']);
    expect(where(labelled({ [ZONE]: 'a__b' }, region))).toEqual(['b']);
    expect(where(labelled({ [ZONE]: 'a' }, region))).toEqual([]);
    expect(where(labelled({}, region))).toEqual(['b']);
  });

  test("keeps the labels if the driver uses Kubernetes' own", () => {
    const azure = aVolume('pv', { azureDisk: { diskURI: 'u' }, ...inZone('b') });
    expect(where(migrated(azure, 'kubernetes.io/azure-disk'))).toEqual([]);
  });
});
