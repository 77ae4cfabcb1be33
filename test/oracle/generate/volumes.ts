// SPDX-License-Identifier: Apache-2.0
// Generates the volumes that pods use.

import type { Claim, Cluster, Pod, Volume } from '../objects.ts';
import type { Random } from '../random.ts';
import { BIND_COMPLETED, boundClaim, FAST, newClaim, SELECTED_NODE } from './storage.ts';

function addVolume(pod: Pod, volume: Omit<Volume, 'name'>): void {
  const volumes = pod.spec.volumes ?? [];
  pod.spec.volumes = [...volumes, { name: `v${volumes.length}`, ...volume }];
}

function useClaim(pod: Pod, { metadata }: Claim): void {
  addVolume(pod, { persistentVolumeClaim: { claimName: metadata.name } });
}

export interface PodContext {
  readonly random: Random;
  readonly cluster: Cluster;
  readonly pod: Pod;
}

export function addBoundVolume(
  { random, cluster, pod }: PodContext,
  place: 'nodes' | 'zone',
): void {
  useClaim(pod, boundClaim(random, cluster, { namespace: pod.metadata.namespace, place }));
}

/** Volumes that must be attached, some of which other pods already use. */
export function addAttachedVolumes({ random, cluster, pod }: PodContext): void {
  const { namespace } = pod.metadata;
  for (let i = random.int(1, 2); i > 0; i -= 1) {
    const shared = cluster.persistentVolumeClaims.filter(
      ({ metadata, spec }) => metadata.namespace === namespace && spec.volumeName !== undefined,
    );
    if (shared.length > 0 && random.chance(0.3)) useClaim(pod, random.pick(shared));
    else useClaim(pod, boundClaim(random, cluster, { namespace, place: 'any' }));
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

/** A claim that the scheduler has to bind. */
export function addUnboundClaim({ random, cluster, pod }: PodContext): void {
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
  if (random.chance(0.1)) reserveVolumeFor(random, cluster, claim);
  if (random.chance(0.2)) setOwner(pod, claim);
  else useClaim(pod, claim);
}

function reserveVolumeFor(random: Random, cluster: Cluster, claim: Claim): void {
  const free = cluster.persistentVolumes.filter(
    ({ spec }) =>
      spec.claimRef === undefined && spec.storageClassName === claim.spec.storageClassName,
  );
  const { namespace, name } = claim.metadata;
  // With the uid of an earlier claim of that name it is not reserved for the claim.
  const uid = random.chance(0.3) ? { uid: 'of-an-earlier-one' } : {};
  if (free.length > 0) random.pick(free).spec.claimRef = { namespace, name, ...uid };
}

// The claim of a generic ephemeral volume is named after pod and volume, and is owned by the pod.
function setOwner(pod: Pod, claim: Claim): void {
  const { name, uid } = pod.metadata;
  claim.metadata.name = `${name}-v${pod.spec.volumes?.length ?? 0}`;
  claim.metadata.ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name, uid, controller: true }];
  addVolume(pod, { ephemeral: { volumeClaimTemplate: { spec: {} } } });
}

function isRunning({ status }: Pod): boolean {
  return status !== undefined;
}

/** A claim that should have been bound earlier, or that is otherwise unusable. */
export function addUnusableClaim({ random, cluster, pod }: PodContext): void {
  const troubles = ['unbound', 'half-bound', 'missing', 'lost', 'deleted', 'no-class', 'no-volume'];
  // If a running pod on the node does not own its ephemeral claim, the scheduler returns an error.
  const errors = random.pick(isRunning(pod) ? troubles : [...troubles, 'not-owned']);
  if (errors === 'missing') {
    addVolume(pod, { persistentVolumeClaim: { claimName: 'missing' } });
    return;
  }
  const claim = newClaim(random, cluster, pod.metadata.namespace);
  claim.spec.storageClassName = errors === 'unbound' ? 'now' : 'fast';
  if (errors === 'half-bound') claim.spec.volumeName = 'pv-0';
  if (errors === 'no-class') claim.spec.storageClassName = random.pick(['', 'unheard-of']);
  if (errors === 'no-volume' || errors === 'lost') bindToMissingVolume(claim);
  if (errors === 'lost') claim.status.phase = 'Lost';
  if (errors === 'deleted') claim.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  if (errors !== 'not-owned') useClaim(pod, claim);
  else {
    setOwner(pod, claim);
    delete claim.metadata.ownerReferences;
  }
}

function bindToMissingVolume(claim: Claim): void {
  claim.spec.volumeName = 'gone';
  claim.metadata.annotations = { [BIND_COMPLETED]: 'yes' };
}

/** A ReadWriteOncePod claim. */
export function addExclusiveClaim({ random, cluster, pod }: PodContext): void {
  const { namespace } = pod.metadata;
  const claim = boundClaim(random, cluster, { namespace, place: 'any' });
  claim.spec.accessModes = ['ReadWriteOncePod'];
  const rivals = cluster.pods.filter(({ metadata }) => metadata.namespace === namespace);
  if (rivals.length > 0 && random.chance(0.5)) useClaim(random.pick(rivals), claim);
  useClaim(pod, claim);
}

export function addInlineDisk({ random, pod }: Omit<PodContext, 'cluster'>): void {
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
