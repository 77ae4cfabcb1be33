// SPDX-License-Identifier: Apache-2.0
// Which volumes pods use.

import type { Claim, Cluster, Pod, Volume } from '../objects.ts';
import type { Random } from '../random.ts';
import { BIND_COMPLETED, boundClaim, FAST, newClaim, SELECTED_NODE } from './storage.ts';

function addVolume(pod: Pod, volume: Omit<Volume, 'name'>): void {
  const volumes = pod.spec.volumes ?? [];
  pod.spec.volumes = [...volumes, { name: `v${volumes.length}`, ...volume }];
}

function use(pod: Pod, { metadata }: Claim): void {
  addVolume(pod, { persistentVolumeClaim: { claimName: metadata.name } });
}

export interface VolumeWish {
  readonly random: Random;
  readonly cluster: Cluster;
  readonly pod: Pod;
}

export function addBoundVolume(
  { random, cluster, pod }: VolumeWish,
  place: 'nodes' | 'zone',
): void {
  use(pod, boundClaim(random, cluster, { namespace: pod.metadata.namespace, place }));
}

/** Volumes that must be attached, some of them by other pods already. */
export function addAttachedVolumes({ random, cluster, pod }: VolumeWish): void {
  const { namespace } = pod.metadata;
  for (let i = random.int(1, 2); i > 0; i -= 1) {
    const shared = cluster.persistentVolumeClaims.filter(
      ({ metadata, spec }) => metadata.namespace === namespace && spec.volumeName !== undefined,
    );
    if (shared.length > 0 && random.chance(0.3)) use(pod, random.pick(shared));
    else use(pod, boundClaim(random, cluster, { namespace, place: 'any' }));
  }
  const { name } = random.pick(cluster.nodes).metadata;
  const [volume] = cluster.persistentVolumes.slice(-1);
  if (volume !== undefined && random.chance(0.2))
    cluster.volumeAttachments.push({
      metadata: { name: `attachment-${cluster.volumeAttachments.length}` },
      spec: {
        attacher: FAST,
        nodeName: name,
        source: { persistentVolumeName: volume.metadata.name },
      },
    });
}

/** A claim that the scheduler is to bind. */
export function addUnboundClaim({ random, cluster, pod }: VolumeWish): void {
  const claim = newClaim(random, cluster, pod.metadata.namespace);
  claim.spec.storageClassName = random.pick([
    'fast',
    'fast',
    'thin',
    'thin',
    'thin',
    'local',
    'local',
    'legacy',
  ]);
  if (random.chance(0.12))
    claim.metadata.annotations = { [SELECTED_NODE]: random.pick(['n0', 'n1', 'n2']) };
  if (random.chance(0.15)) claim.spec.selector = { matchLabels: { kind: 'x' } };
  if (random.chance(0.06)) claim.spec.volumeMode = 'Block';
  if (random.chance(0.05)) claim.spec.volumeAttributesClassName = 'gold';
  if (random.chance(0.1)) keepVolumeFor(random, cluster, claim);
  if (random.chance(0.2)) own(pod, claim);
  else use(pod, claim);
}

function keepVolumeFor(random: Random, cluster: Cluster, claim: Claim): void {
  const free = cluster.persistentVolumes.filter(
    ({ spec }) =>
      spec.claimRef === undefined && spec.storageClassName === claim.spec.storageClassName,
  );
  const { namespace, name } = claim.metadata;
  // With the uid of an earlier claim of that name it is kept for nobody.
  const uid = random.chance(0.3) ? { uid: 'of-an-earlier-one' } : {};
  if (free.length > 0) random.pick(free).spec.claimRef = { namespace, name, ...uid };
}

// The claim of a generic ephemeral volume is named after pod and volume, and belongs to the pod.
function own(pod: Pod, claim: Claim): void {
  const { name, uid } = pod.metadata;
  claim.metadata.name = `${name}-v${pod.spec.volumes?.length ?? 0}`;
  claim.metadata.ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name, uid, controller: true }];
  addVolume(pod, { ephemeral: { volumeClaimTemplate: { spec: {} } } });
}

function isRunning({ status }: Pod): boolean {
  return status !== undefined;
}

/** A claim that somebody should have bound before, or that is otherwise not ready. */
export function addTroubledClaim({ random, cluster, pod }: VolumeWish): void {
  const troubles = ['unbound', 'half-bound', 'missing', 'lost', 'deleted', 'no-class', 'no-volume'];
  // Next to a running pod whose claim is somebody else's, the scheduler gives up with an error.
  const trouble = random.pick(isRunning(pod) ? troubles : [...troubles, 'not-owned']);
  if (trouble === 'missing') {
    addVolume(pod, { persistentVolumeClaim: { claimName: 'missing' } });
    return;
  }
  const claim = newClaim(random, cluster, pod.metadata.namespace);
  claim.spec.storageClassName = trouble === 'unbound' ? 'now' : 'fast';
  if (trouble === 'half-bound') claim.spec.volumeName = 'pv-0';
  if (trouble === 'no-class') claim.spec.storageClassName = random.pick(['', 'unheard-of']);
  if (trouble === 'no-volume' || trouble === 'lost') markGone(claim);
  if (trouble === 'lost') claim.status.phase = 'Lost';
  if (trouble === 'deleted') claim.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  if (trouble !== 'not-owned') use(pod, claim);
  else {
    own(pod, claim);
    delete claim.metadata.ownerReferences;
  }
}

function markGone(claim: Claim): void {
  claim.spec.volumeName = 'gone';
  claim.metadata.annotations = { [BIND_COMPLETED]: 'yes' };
}

/** For one pod only, whichever uses it first. */
export function addExclusiveClaim({ random, cluster, pod }: VolumeWish): void {
  const { namespace } = pod.metadata;
  const claim = boundClaim(random, cluster, { namespace, place: 'any' });
  claim.spec.accessModes = ['ReadWriteOncePod'];
  const rivals = cluster.pods.filter(({ metadata }) => metadata.namespace === namespace);
  if (rivals.length > 0 && random.chance(0.5)) use(random.pick(rivals), claim);
  use(pod, claim);
}

export function addInlineDisk({ random, pod }: Omit<VolumeWish, 'cluster'>): void {
  const readOnly = random.chance(0.3);
  const disk = random.pick(['one', 'one', 'one', 'two']);
  const disks: readonly Omit<Volume, 'name'>[] = [
    { gcePersistentDisk: { pdName: disk, readOnly } },
    { awsElasticBlockStore: { volumeID: disk } },
    { iscsi: { targetPortal: 'p', iqn: `iqn.${disk}`, lun: 0, readOnly } },
    { rbd: { monitors: random.some(['m1', 'm2', 'm3']), pool: 'rbd', image: disk, readOnly } },
  ];
  addVolume(pod, random.pick(disks));
}
