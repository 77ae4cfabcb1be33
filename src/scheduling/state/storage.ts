// SPDX-License-Identifier: Apache-2.0
// Everything known of storage, and what has been promised to pods that were placed in a what-if.

import type { CsiNode, CsiStorageCapacity, VolumeAttachment } from '../../model/csi.ts';
import type { PersistentVolume } from '../../model/persistent-volume.ts';
import { type Pod, podKey } from '../../model/pod.ts';
import type { StorageClass } from '../../model/storage-class.ts';
import type { VolumeClaim } from '../../model/volume-claim.ts';
import type { Resident } from './resident.ts';

export interface StorageObjects {
  readonly volumes: readonly PersistentVolume[];
  readonly claims: readonly VolumeClaim[];
  readonly classes: readonly StorageClass[];
  readonly csiNodes: readonly CsiNode[];
  readonly attachments: readonly VolumeAttachment[];
  readonly capacities: readonly CsiStorageCapacity[];
  /** Drivers whose reported capacity decides. */
  readonly capacityDrivers: ReadonlySet<string>;
}

export const NO_STORAGE: StorageObjects = {
  volumes: [],
  claims: [],
  classes: [],
  csiNodes: [],
  attachments: [],
  capacities: [],
  capacityDrivers: new Set(),
};

export class Storage {
  readonly #volumes: ReadonlyMap<string, PersistentVolume>;
  readonly #volumesByClass: ReadonlyMap<string, readonly PersistentVolume[]>;
  readonly #claims: ReadonlyMap<string, VolumeClaim>;
  readonly #classes: ReadonlyMap<string, StorageClass>;
  readonly #csiNodes: ReadonlyMap<string, CsiNode>;
  readonly #attachments: ReadonlyMap<string, readonly VolumeAttachment[]>;
  readonly capacities: readonly CsiStorageCapacity[];
  readonly #capacityDrivers: ReadonlySet<string>;
  /** Placed pods by the claim they name. */
  readonly #users = new Map<string, number>();
  readonly #promisedVolumes = new Map<string, string>();
  readonly #provisionedOn = new Map<string, string>();

  constructor(objects: StorageObjects) {
    this.#volumes = new Map(objects.volumes.map((one) => [one.name, one]));
    this.#volumesByClass = Map.groupBy(objects.volumes, (one) => one.storageClass);
    this.#claims = new Map(objects.claims.map((one) => [podKey(one), one]));
    this.#classes = new Map(objects.classes.map((one) => [one.name, one]));
    this.#csiNodes = new Map(objects.csiNodes.map((one) => [one.nodeName, one]));
    this.#attachments = Map.groupBy(objects.attachments, (one) => one.nodeName);
    this.capacities = objects.capacities;
    this.#capacityDrivers = objects.capacityDrivers;
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
    return (this.#users.get(podKey(claim)) ?? 0) > 0;
  }

  /** The claim that a volume was promised to in this what-if. */
  promisedTo(volume: PersistentVolume): string | undefined {
    return this.#promisedVolumes.get(volume.name);
  }

  /** The node for which a claim is to be provisioned, by its own annotation or by this what-if. */
  selectedNode(claim: VolumeClaim): string | undefined {
    return this.#provisionedOn.get(podKey(claim)) ?? claim.selectedNode;
  }

  use({ pod, promise }: Resident, nodeName: string): void {
    this.#count(pod, 1);
    for (const [volume, claim] of promise?.volumes ?? []) this.#promisedVolumes.set(volume, claim);
    for (const claim of promise?.provisioned ?? []) this.#provisionedOn.set(claim, nodeName);
  }

  release({ pod, promise }: Resident): void {
    this.#count(pod, -1);
    for (const [volume] of promise?.volumes ?? []) this.#promisedVolumes.delete(volume);
    for (const claim of promise?.provisioned ?? []) this.#provisionedOn.delete(claim);
  }

  #count(pod: Pod, pods: 1 | -1): void {
    for (const volume of pod.volumes) {
      if (volume.kind !== 'claim') continue;
      const key = `${pod.namespace}/${volume.claimName}`;
      this.#users.set(key, (this.#users.get(key) ?? 0) + pods);
    }
  }
}
