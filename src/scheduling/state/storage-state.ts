// SPDX-License-Identifier: Apache-2.0
// The storage objects of a cluster, and the volumes reserved for pods that a simulation placed.

import type { CsiNode, CsiStorageCapacity, VolumeAttachment } from '../../model/csi.ts';
import type { PersistentVolume } from '../../model/persistent-volume.ts';
import { type Pod, podKey } from '../../model/pod.ts';
import type { StorageClass } from '../../model/storage-class.ts';
import type { StorageObjects } from '../../model/storage-objects.ts';
import type { VolumeClaim } from '../../model/volume-claim.ts';
import type { PlacedPod } from './placed-pod.ts';

export class StorageState {
  #volumes: ReadonlyMap<string, PersistentVolume> = new Map();
  #volumesByClass: ReadonlyMap<string, readonly PersistentVolume[]> = new Map();
  #claims: ReadonlyMap<string, VolumeClaim> = new Map();
  #classes: ReadonlyMap<string, StorageClass> = new Map();
  #csiNodes: ReadonlyMap<string, CsiNode> = new Map();
  #attachments: ReadonlyMap<string, readonly VolumeAttachment[]> = new Map();
  #capacities: readonly CsiStorageCapacity[] = [];
  #capacityDrivers: ReadonlySet<string> = new Set();
  /** Number of placed pods by claim. */
  readonly #podsByClaim = new Map<string, number>();
  readonly #reservedVolumes = new Map<string, string>();
  /** By claim. Several pods may share one. */
  readonly #provisionedOn = new Map<string, { readonly node: string; readonly pods: number }>();

  constructor(objects: StorageObjects) {
    this.replace(objects);
  }

  /** Replaces all objects. The pods that use them stay as they are. */
  replace(objects: StorageObjects): void {
    this.#volumes = new Map(objects.volumes.map((one) => [one.name, one]));
    this.#volumesByClass = Map.groupBy(objects.volumes, (one) => one.storageClass);
    this.#claims = new Map(objects.claims.map((one) => [podKey(one), one]));
    this.#classes = new Map(objects.classes.map((one) => [one.name, one]));
    this.#csiNodes = new Map(objects.csiNodes.map((one) => [one.nodeName, one]));
    this.#attachments = Map.groupBy(objects.attachments, (one) => one.nodeName);
    this.#capacities = objects.capacities;
    this.#capacityDrivers = objects.capacityDrivers;
  }

  get capacities(): readonly CsiStorageCapacity[] {
    return this.#capacities;
  }

  volume(name: string): PersistentVolume | undefined {
    return this.#volumes.get(name);
  }

  volumesOfClass(name: string): readonly PersistentVolume[] {
    return this.#volumesByClass.get(name) ?? [];
  }

  claim(namespace: string, name: string): VolumeClaim | undefined {
    return this.#claims.get(`${namespace}/${name}`);
  }

  storageClass(name: string): StorageClass | undefined {
    return this.#classes.get(name);
  }

  csiNode(nodeName: string): CsiNode | undefined {
    return this.#csiNodes.get(nodeName);
  }

  attachments(nodeName: string): readonly VolumeAttachment[] {
    return this.#attachments.get(nodeName) ?? [];
  }

  reportsCapacity(driver: string): boolean {
    return this.#capacityDrivers.has(driver);
  }

  isClaimUsed(claim: VolumeClaim): boolean {
    return (this.#podsByClaim.get(podKey(claim)) ?? 0) > 0;
  }

  /** The claim for which the simulation reserved a volume. */
  reservedFor(volume: PersistentVolume): string | undefined {
    return this.#reservedVolumes.get(volume.name);
  }

  /** The node for which a claim is to be provisioned, by its annotation or by the simulation. */
  selectedNode(claim: VolumeClaim): string | undefined {
    return this.#provisionedOn.get(podKey(claim))?.node ?? claim.selectedNode;
  }

  addPod({ pod, reservation }: PlacedPod, nodeName: string): void {
    this.#countClaims(pod, 1);
    for (const [volume, claim] of reservation?.volumes ?? [])
      this.#reservedVolumes.set(volume, claim);
    for (const claim of reservation?.provisioned ?? []) this.#provision(claim, nodeName, 1);
  }

  removePod({ pod, reservation }: PlacedPod): void {
    this.#countClaims(pod, -1);
    for (const [volume] of reservation?.volumes ?? []) this.#reservedVolumes.delete(volume);
    for (const claim of reservation?.provisioned ?? [])
      this.#provision(claim, this.#provisionedOn.get(claim)?.node ?? '', -1);
  }

  #provision(claim: string, node: string, added: 1 | -1): void {
    const pods = (this.#provisionedOn.get(claim)?.pods ?? 0) + added;
    if (pods === 0) this.#provisionedOn.delete(claim);
    else this.#provisionedOn.set(claim, { node, pods });
  }

  #countClaims(pod: Pod, pods: 1 | -1): void {
    for (const volume of pod.volumes) {
      if (volume.kind !== 'claim') continue;
      const key = `${pod.namespace}/${volume.claimName}`;
      this.#podsByClaim.set(key, (this.#podsByClaim.get(key) ?? 0) + pods);
    }
  }
}
