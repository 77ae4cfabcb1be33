// SPDX-License-Identifier: Apache-2.0
// Generates classes, drivers, volumes and claims. Volumes have distinct sizes and no two are reserved for the
// same claim: otherwise the scheduler itself chooses at random.

import type { Claim, Cluster, NodeSelector, PersistentVolume, StorageClass } from '../objects.ts';
import type { Random } from '../random.ts';
import { BETA_ZONE, HOSTNAME, REGION, REGION_NAME, ZONE, ZONES } from './labels.ts';

export const FAST = 'csi.fast.example';
export const THIN = 'csi.thin.example';
const GCE = 'kubernetes.io/gce-pd';

export const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed';
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node';

const CLASSES: readonly StorageClass[] = [
  { metadata: { name: 'fast' }, provisioner: FAST, volumeBindingMode: 'WaitForFirstConsumer' },
  { metadata: { name: 'thin' }, provisioner: THIN, volumeBindingMode: 'WaitForFirstConsumer' },
  { metadata: { name: 'legacy' }, provisioner: GCE, volumeBindingMode: 'WaitForFirstConsumer' },
  { metadata: { name: 'now' }, provisioner: FAST, volumeBindingMode: 'Immediate' },
  {
    metadata: { name: 'local' },
    provisioner: 'kubernetes.io/no-provisioner',
    volumeBindingMode: 'WaitForFirstConsumer',
  },
];

export function addStorage(random: Random, cluster: Cluster): void {
  cluster.storageClasses = structuredClone([...CLASSES]);
  for (const one of cluster.storageClasses)
    if (
      one.volumeBindingMode !== 'Immediate' &&
      random.chance(one.metadata.name === 'thin' ? 0.2 : 0.6)
    )
      one.allowedTopologies = [
        { matchLabelExpressions: [{ key: ZONE, values: random.some(ZONES, 0.4) }] },
      ];
  cluster.csiNodes = cluster.nodes
    .filter(() => random.chance(0.8))
    .map(({ metadata }) => ({
      metadata: {
        name: metadata.name,
        ...(random.chance(0.6)
          ? { annotations: { 'storage.alpha.kubernetes.io/migrated-plugins': migrated(random) } }
          : {}),
      },
      spec: { drivers: drivers(random) },
    }));
  addCapacities(random, cluster);
  for (let i = random.int(1, 4); i > 0; i -= 1) addAvailableVolume(random, cluster);
}

function migrated(random: Random): string {
  return random.some([GCE, 'kubernetes.io/aws-ebs', 'kubernetes.io/cinder'], 0.6).join(',');
}

function drivers(random: Random): Cluster['csiNodes'][number]['spec']['drivers'] {
  return [FAST, THIN, 'pd.csi.storage.gke.io', 'ebs.csi.aws.com'].map((name) => ({
    name,
    nodeID: 'id',
    ...(random.chance(0.7) ? { allocatable: { count: random.int(1, 3) } } : {}),
  }));
}

function addCapacities(random: Random, cluster: Cluster): void {
  cluster.csiDrivers = [
    { metadata: { name: THIN }, spec: { storageCapacity: random.chance(0.8) } },
    { metadata: { name: FAST }, spec: { storageCapacity: false } },
  ];
  cluster.csiStorageCapacities = ZONES.filter(() => random.chance(0.7)).map((zone) => ({
    metadata: { name: `capacity-${zone}`, namespace: 'default' },
    storageClassName: 'thin',
    ...(random.chance(0.95) ? { nodeTopology: { matchLabels: { [ZONE]: zone } } } : {}),
    ...(random.chance(0.95) ? { capacity: random.pick(['3Gi', '5Gi', '100Gi']) } : {}),
    ...(random.chance(0.3) ? { maximumVolumeSize: random.pick(['6Gi', '50Gi']) } : {}),
  }));
}

function reach(random: Random, nodeNames: readonly string[]): NodeSelector {
  const onNode = random.chance(0.4);
  return {
    nodeSelectorTerms: [
      {
        matchExpressions: [
          onNode
            ? { key: HOSTNAME, operator: 'In', values: random.some(nodeNames, 0.4) }
            : { key: ZONE, operator: 'In', values: random.some(ZONES, 0.35) },
        ],
      },
    ],
  };
}

function newVolume(random: Random, cluster: Cluster): PersistentVolume {
  const index = cluster.persistentVolumes.length;
  const volume: PersistentVolume = {
    metadata: { name: `pv-${index}` },
    spec: {
      capacity: { storage: `${random.int(2, 12) * 1000 + index}Mi` },
      accessModes: ['ReadWriteOnce', ...(random.chance(0.3) ? ['ReadWriteMany'] : [])],
      ...source(random, index),
    },
    status: { phase: 'Available' },
  };
  cluster.persistentVolumes.push(volume);
  return volume;
}

function source(random: Random, index: number): Partial<PersistentVolume['spec']> {
  if (random.chance(0.12)) return { gcePersistentDisk: { pdName: `disk-${index}` } };
  if (random.chance(0.06)) return { awsElasticBlockStore: { volumeID: `vol-${index}` } };
  if (random.chance(0.05)) return { nfs: { server: 'nas', path: '/' } };
  // Two volumes may refer to the same disk.
  return { csi: { driver: FAST, volumeHandle: `handle-${random.chance(0.1) ? 0 : index}` } };
}

function addAvailableVolume(random: Random, cluster: Cluster): void {
  const volume = newVolume(random, cluster);
  const { spec } = volume;
  spec.storageClassName = random.pick(['local', 'local', 'local', 'fast']);
  if (random.chance(0.85)) spec.nodeAffinity = { required: reach(random, nodeNames(cluster)) };
  if (random.chance(0.1)) spec.volumeMode = 'Block';
  if (random.chance(0.1)) volume.status.phase = 'Released';
  if (random.chance(0.4)) volume.metadata.labels = { kind: random.pick(['x', 'y']) };
  if (random.chance(0.06)) volume.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  if (random.chance(0.06)) spec.volumeAttributesClassName = 'gold';
}

function nodeNames(cluster: Cluster): string[] {
  return cluster.nodes.map(({ metadata }) => metadata.name);
}

export function newClaim(random: Random, cluster: Cluster, namespace: string): Claim {
  const index = cluster.persistentVolumeClaims.length;
  const claim: Claim = {
    metadata: { name: `claim-${index}`, namespace, uid: `claim-uid-${index}` },
    spec: {
      accessModes: [random.pick(['ReadWriteOnce', 'ReadWriteOnce', 'ReadWriteMany'])],
      resources: { requests: { storage: `${random.int(1, 8) * 1000 + index}Mi` } },
    },
    status: { phase: 'Pending' },
  };
  cluster.persistentVolumeClaims.push(claim);
  return claim;
}

/** `place` is how the volume of a bound claim is tied to nodes. */
export function boundClaim(
  random: Random,
  cluster: Cluster,
  { namespace, place }: { readonly namespace: string; readonly place: 'nodes' | 'zone' | 'any' },
): Claim {
  const claim = newClaim(random, cluster, namespace);
  const volume = newVolume(random, cluster);
  claim.spec.storageClassName = volume.spec.storageClassName = 'now';
  claim.spec.volumeName = volume.metadata.name;
  claim.metadata.annotations = { [BIND_COMPLETED]: 'yes' };
  claim.status.phase = volume.status.phase = 'Bound';
  volume.spec.claimRef = { namespace, name: claim.metadata.name, uid: claim.metadata.uid };
  if (place === 'nodes') volume.spec.nodeAffinity = { required: reach(random, nodeNames(cluster)) };
  if (place === 'zone') addZoneLabels(random, volume);
  return claim;
}

function addZoneLabels(random: Random, volume: PersistentVolume): void {
  const zones = random.some(ZONES, 0.4).join('__');
  volume.metadata.labels = { [random.pick([ZONE, ZONE, BETA_ZONE])]: zones };
  if (random.chance(0.2)) volume.metadata.labels[REGION] = REGION_NAME;
}
