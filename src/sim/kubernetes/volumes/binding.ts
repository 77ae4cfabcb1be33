// SPDX-License-Identifier: Apache-2.0
// Binds claims to volumes: to an available one that fits, or to a new one of the claim's storage class.
import { parseQuantity, wholeValue } from '../../../model/quantity.ts';
import { type Controller, type ControllerContext, isFinished } from '../controllers/controller.ts';
import { toPod } from '../controllers/kubernetes-model.ts';
import {
  isTerminating,
  listField,
  objectField,
  type SimObject,
  specOf,
  statusOf,
  textField,
  textList,
  textMap,
} from '../storage/objects.ts';
import { ATTACHMENTS, CLAIMS, PODS, STORAGE_CLASSES, VOLUMES } from '../storage/resources.ts';
import { claimNames, waitsForConsumer } from './claims.ts';

const NO_PROVISIONER = 'kubernetes.io/no-provisioner';
const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class';
const BIND_COMPLETED = { 'pv.kubernetes.io/bind-completed': 'yes' };

/** `detachMs`: from the end of the last pod that uses a volume until it is detached. */
export function createVolumeController(detachMs: number): Controller {
  const unusedSince = new Map<string, number>();
  return {
    name: 'persistentvolume-binder-controller',
    watches: [CLAIMS, VOLUMES, STORAGE_CLASSES, PODS],
    sync(cluster) {
      cluster.forEach(cluster.list(CLAIMS).filter(isPending), (claim) => {
        const classed = setDefaultClass(cluster, claim);
        if (!waitsForConsumer(cluster, classed)) bindOrProvision(cluster, classed, undefined);
      });
      releaseVolumes(cluster);
      return attachAndDetach(cluster, { detachMs, unusedSince });
    },
  };
}

function isPending(claim: SimObject): boolean {
  return !isTerminating(claim) && textField(statusOf(claim), 'phase') !== 'Bound';
}

function setDefaultClass(cluster: ControllerContext, claim: SimObject): SimObject {
  if (specOf(claim)['storageClassName'] !== undefined) return claim;
  const found = cluster
    .list(STORAGE_CLASSES)
    .find((one) => textMap(one.metadata, 'annotations')[DEFAULT_CLASS] === 'true');
  if (found === undefined) return claim;
  return cluster.patch(CLAIMS, claim, { spec: { storageClassName: found.metadata.name } });
}

export function bindOrProvision(
  cluster: ControllerContext,
  claim: SimObject,
  nodeName: string | undefined,
): void {
  const volume = findAvailable(cluster, claim) ?? provision(cluster, claim, nodeName);
  if (volume !== undefined) bindClaim(cluster, claim, volume);
}

function bytesOf(quantity: string): bigint {
  const parsed = parseQuantity(quantity);
  return parsed.ok ? wholeValue(parsed.value) : 0n;
}

function requestedStorage(claim: SimObject): string {
  return textField(objectField(objectField(specOf(claim), 'resources'), 'requests'), 'storage');
}

function findAvailable(cluster: ControllerContext, claim: SimObject): SimObject | undefined {
  const spec = specOf(claim);
  const { name, namespace } = claim.metadata;
  const wanted = textField(spec, 'volumeName');
  return cluster.list(VOLUMES).find((volume) => {
    const own = specOf(volume);
    const claimRef = objectField(own, 'claimRef');
    const isReserved = textField(claimRef, 'name') !== '';
    const isMine = claimRef['name'] === name && claimRef['namespace'] === namespace;
    return (
      textField(statusOf(volume), 'phase') === 'Available' &&
      (!isReserved || isMine) &&
      (wanted === '' || volume.metadata.name === wanted) &&
      textField(own, 'storageClassName') === textField(spec, 'storageClassName') &&
      textList(spec, 'accessModes').every((mode) => textList(own, 'accessModes').includes(mode)) &&
      bytesOf(textField(objectField(own, 'capacity'), 'storage')) >=
        bytesOf(requestedStorage(claim))
    );
  });
}

function provision(
  cluster: ControllerContext,
  claim: SimObject,
  nodeName: string | undefined,
): SimObject | undefined {
  const spec = specOf(claim);
  const storageClassName = textField(spec, 'storageClassName');
  const storageClass = cluster.find(STORAGE_CLASSES, '', storageClassName);
  const driver = storageClass === undefined ? '' : textField(storageClass, 'provisioner');
  if (storageClass === undefined || driver === '' || driver === NO_PROVISIONER) return undefined;
  const name = `pvc-${claim.metadata.uid}`;
  const isLocal = objectField(storageClass, 'parameters')['local'] === 'true';
  return cluster.create(VOLUMES, {
    metadata: { name, annotations: { 'pv.kubernetes.io/provisioned-by': driver } },
    spec: {
      capacity: { storage: requestedStorage(claim) },
      accessModes: textList(spec, 'accessModes'),
      storageClassName,
      persistentVolumeReclaimPolicy: textField(storageClass, 'reclaimPolicy'),
      csi: { driver, volumeHandle: name },
      ...(isLocal && nodeName !== undefined && { nodeAffinity: affinityTo(nodeName) }),
    },
  });
}

function affinityTo(nodeName: string) {
  const expression = { key: 'kubernetes.io/hostname', operator: 'In', values: [nodeName] };
  return { required: { nodeSelectorTerms: [{ matchExpressions: [expression] }] } };
}

function bindClaim(cluster: ControllerContext, claim: SimObject, volume: SimObject): void {
  const { name, namespace, uid } = claim.metadata;
  const claimRef = { kind: 'PersistentVolumeClaim', apiVersion: 'v1', name, namespace, uid };
  const reserved = cluster.patch(VOLUMES, volume, { spec: { claimRef } });
  cluster.updateStatus(VOLUMES, reserved, { phase: 'Bound' });
  const bound = cluster.patch(CLAIMS, claim, {
    metadata: { annotations: BIND_COMPLETED },
    spec: { volumeName: volume.metadata.name },
  });
  const spec = specOf(volume);
  cluster.updateStatus(CLAIMS, bound, {
    phase: 'Bound',
    accessModes: textList(spec, 'accessModes'),
    capacity: objectField(spec, 'capacity'),
  });
}

/** The volume of a deleted claim is deleted or released, as its reclaim policy says. */
function releaseVolumes(cluster: ControllerContext): void {
  const bound = cluster
    .list(VOLUMES)
    .filter((volume) => textField(statusOf(volume), 'phase') === 'Bound');
  cluster.forEach(bound, (volume) => {
    const claimRef = objectField(specOf(volume), 'claimRef');
    const claim = cluster.find(
      CLAIMS,
      textField(claimRef, 'namespace'),
      textField(claimRef, 'name'),
    );
    if (claim?.metadata.uid === claimRef['uid']) return;
    if (specOf(volume)['persistentVolumeReclaimPolicy'] === 'Delete') {
      cluster.delete(VOLUMES, volume);
    } else cluster.updateStatus(VOLUMES, volume, { phase: 'Released' });
  });
}

interface DetachOptions {
  readonly detachMs: number;
  /** When an attachment was found unused, by its name. */
  readonly unusedSince: Map<string, number>;
}

function attachAndDetach(
  cluster: ControllerContext,
  { detachMs, unusedSince }: DetachOptions,
): number | undefined {
  const wanted = findWanted(cluster);
  const existing = new Map(cluster.list(ATTACHMENTS).map((one) => [one.metadata.name, one]));
  for (const [name, spec] of wanted) {
    unusedSince.delete(name);
    if (existing.has(name)) continue;
    const created = cluster.create(ATTACHMENTS, { metadata: { name }, spec });
    cluster.updateStatus(ATTACHMENTS, created, { attached: true });
  }
  const now = cluster.clock.monotonic();
  let next: number | undefined;
  for (const [name, attachment] of existing) {
    if (wanted.has(name) || !name.startsWith('csi-')) continue;
    const since = unusedSince.get(name) ?? now;
    unusedSince.set(name, since);
    if (now - since >= detachMs) cluster.delete(ATTACHMENTS, attachment);
    else next = Math.min(next ?? since + detachMs, since + detachMs);
  }
  return next;
}

interface AttachmentSpec {
  readonly attacher: string;
  readonly nodeName: string;
  readonly source: { readonly persistentVolumeName: string };
  readonly [key: string]: string | { readonly persistentVolumeName: string };
}

/** Attachments of the CSI volumes of all pods that are bound and not finished, by name. */
function findWanted(cluster: ControllerContext): ReadonlyMap<string, AttachmentSpec> {
  const wanted = new Map<string, AttachmentSpec>();
  for (const object of cluster.list(PODS)) {
    const nodeName = textField(specOf(object), 'nodeName');
    if (
      nodeName === '' ||
      isFinished(object) ||
      listField(specOf(object), 'volumes').length === 0
    ) {
      continue;
    }
    const pod = toPod(object);
    for (const claimName of pod === undefined ? [] : claimNames(pod)) {
      const volumeName = volumeOf(cluster, object, claimName);
      const volume = cluster.find(VOLUMES, '', volumeName);
      const driver = volume && textField(objectField(specOf(volume), 'csi'), 'driver');
      if (!driver) continue;
      const source = { persistentVolumeName: volumeName };
      wanted.set(`csi-${volumeName}-${nodeName}`, { attacher: driver, nodeName, source });
    }
  }
  return wanted;
}

function volumeOf(cluster: ControllerContext, pod: SimObject, claimName: string): string {
  const claim = cluster.find(CLAIMS, pod.metadata.namespace ?? '', claimName);
  return claim === undefined ? '' : textField(specOf(claim), 'volumeName');
}
