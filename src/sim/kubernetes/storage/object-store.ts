// SPDX-License-Identifier: Apache-2.0
// Objects with one increasing resource version for all resources, and the change log that serves watches.
import type { Clock } from '../../../ports/clock.ts';
import type { Random } from '../../../ports/random.ts';
import { conflictError, existsError, expiredError, notFoundError } from './api-error.ts';
import type { TerminationMark } from './deletion.ts';
import {
  formatTime,
  isEqualJson,
  isObject,
  type JsonObject,
  numberField,
  objectField,
  type SimObject,
  type SimObjectMeta,
  textField,
  textList,
  withoutTypeAndMetadata,
} from './objects.ts';
import { qualifiedName, type Resource } from './resources.ts';

export interface ObjectChange {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly resource: Resource;
  readonly object: SimObject;
  /** The object before the change; absent when it was added. */
  readonly previous?: SimObject;
}

/** All objects at one resource version. */
export interface ObjectSnapshot {
  readonly version: number;
  readonly objects: ReadonlyMap<Resource, ReadonlyMap<string, SimObject>>;
}

export interface ObjectAddress {
  readonly resource: Resource;
  /** Empty for cluster-scoped resources. */
  readonly namespace: string;
  readonly name: string;
}

/** Number of changes kept for watches, like the watch cache of a real API server. */
const MAX_LOG_LENGTH = 10_000;

export class ObjectStore {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #objects = new Map<Resource, Map<string, SimObject>>();
  /** All objects of a resource in the order of their keys, until the next change. */
  readonly #sorted = new Map<Resource, readonly SimObject[]>();
  readonly #watchers = new Set<(change: ObjectChange) => void>();
  /** Changes that the watchers have not seen yet. */
  readonly #undelivered: ObjectChange[] = [];
  #isDelivering = false;
  #log: ObjectChange[] = [];
  #version = 1;
  readonly #lastChanges = new Map<Resource, number>();
  #isDryRun = false;
  /** Changes up to this version are no longer in the log. */
  #compactedVersion = 0;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  get version(): number {
    return this.#version;
  }

  /** Version of the last change to any object of this resource. */
  lastChangeVersion(resource: Resource): number {
    return this.#lastChanges.get(resource) ?? 0;
  }

  list(resource: Resource, namespace = ''): readonly SimObject[] {
    const all = this.#sorted.get(resource) ?? this.#sort(resource);
    return namespace === '' ? all : all.filter(({ metadata }) => metadata.namespace === namespace);
  }

  count(resource: Resource): number {
    return this.#objectsOf(resource).size;
  }

  #sort(resource: Resource): readonly SimObject[] {
    const entries = [...this.#objectsOf(resource)];
    entries.sort(([one], [other]) => (one < other ? -1 : 1));
    const sorted = entries.map(([, object]) => object);
    this.#sorted.set(resource, sorted);
    return sorted;
  }

  find(address: ObjectAddress): SimObject | undefined {
    return this.#objectsOf(address.resource).get(objectKey(address));
  }

  get(address: ObjectAddress): SimObject {
    const found = this.find(address);
    if (found === undefined) throw notFoundError(qualifiedName(address.resource), address.name);
    return found;
  }

  create(address: ObjectAddress, body: JsonObject): SimObject {
    const { resource, name, namespace } = address;
    if (this.find(address) !== undefined) {
      throw existsError(qualifiedName(resource), name);
    }
    const given = isObject(body['metadata']) ? body['metadata'] : {};
    const metadata: SimObjectMeta = {
      ...given,
      name,
      ...(namespace !== '' && { namespace }),
      uid: this.#random.uuid(),
      resourceVersion: this.#nextVersion(),
      creationTimestamp: formatTime(this.#clock.now()),
      ...(resource.hasGeneration && { generation: 1 }),
    };
    const { apiVersion, kind } = resource;
    return this.#put('ADDED', resource, { ...body, apiVersion, kind, metadata });
  }

  /**
   * The uid and resource version in the body, if present, are preconditions. Deletes a terminating object that has no
   * finalizers any more.
   */
  replace(address: ObjectAddress, body: JsonObject): SimObject {
    const current = this.get(address);
    const given = isObject(body['metadata']) ? body['metadata'] : {};
    this.checkPreconditions(address, current, {
      uid: textField(given, 'uid'),
      version: textField(given, 'resourceVersion'),
    });
    return this.#update(address, current, {
      ...body,
      metadata: { ...given, ...serverFields(current.metadata) },
    });
  }

  /** Marks the object as terminating. It stays until its finalizers are gone and its grace period is 0. */
  markTerminating(
    address: ObjectAddress,
    { deletionTimestamp, graceSeconds, finalizers }: TerminationMark,
  ): SimObject {
    const current = this.get(address);
    const metadata = {
      ...current.metadata,
      deletionTimestamp,
      deletionGracePeriodSeconds: graceSeconds,
      ...(finalizers !== undefined && { finalizers }),
    };
    const { custom } = address.resource;
    const generation = numberField(metadata, 'generation') + 1;
    const isFirst = custom !== undefined && current.metadata.deletionTimestamp === undefined;
    const marked = { ...metadata, ...(isFirst && { generation }) };
    return this.#update(address, current, { ...current, metadata: marked });
  }

  #update(address: ObjectAddress, current: SimObject, body: JsonObject): SimObject {
    const { resource } = address;
    const { apiVersion, kind } = resource;
    const { resourceVersion, name, uid, creationTimestamp } = current.metadata;
    const metadata = {
      ...objectField(body, 'metadata'),
      name,
      uid,
      creationTimestamp,
      resourceVersion,
    };
    const next = { ...body, apiVersion, kind, metadata };
    if (isEqualJson(next, current)) return current;
    const isNewSpec =
      resource.hasGeneration &&
      !isEqualJson(versionedFields(resource, next), versionedFields(resource, current));
    const updated: SimObject = {
      ...next,
      metadata: {
        ...metadata,
        resourceVersion: this.#nextVersion(),
        ...(isNewSpec && { generation: numberField(current.metadata, 'generation', 0) + 1 }),
      },
    };
    if (isReleased(updated)) return this.#remove(address, updated, current);
    return this.#put('MODIFIED', resource, updated, current);
  }

  delete(address: ObjectAddress, uid: string): SimObject {
    const current = this.get(address);
    this.checkPreconditions(address, current, { uid, version: '' });
    const resourceVersion = this.#nextVersion();
    const last = { ...current, metadata: { ...current.metadata, resourceVersion } };
    return this.#remove(address, last, current);
  }

  #remove({ resource }: ObjectAddress, last: SimObject, previous: SimObject): SimObject {
    if (this.#isDryRun) return last;
    this.#objectsOf(resource).delete(objectKey(last.metadata));
    this.#recordChange({
      version: this.#version,
      type: 'DELETED',
      resource,
      object: last,
      previous,
    });
    return last;
  }

  /** Runs writes that return their results and change nothing. */
  dryRun<T>(write: () => T): T {
    const version = this.#version;
    this.#isDryRun = true;
    try {
      return write();
    } finally {
      this.#isDryRun = false;
      this.#version = version;
    }
  }

  /**
   * Replays the changes after a version, then reports new ones; none before a version that is in the future, after a restore.
   * Returns the function that ends the watch.
   */
  watch(after: number, onChange: (change: ObjectChange) => void): () => void {
    if (after < this.#compactedVersion) throw expiredError();
    const watcher = (change: ObjectChange) => {
      if (change.version > after) onChange(change);
    };
    for (const change of this.#log) watcher(change);
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Discards the change log: watches from an earlier version receive 410. */
  compact(): void {
    this.#compactedVersion = this.#version;
    this.#log = [];
  }

  /** A backup of all objects, like a snapshot of etcd. */
  snapshot(): ObjectSnapshot {
    const objects = new Map(Array.from(this.#objects, ([one, all]) => [one, new Map(all)]));
    return { version: this.#version, objects };
  }

  /** Restores a backup: resource versions go back too. */
  restore({ version, objects }: ObjectSnapshot): void {
    this.#objects.clear();
    for (const [resource, all] of objects) this.#objects.set(resource, new Map(all));
    this.#sorted.clear();
    this.#version = version;
    for (const resource of this.#lastChanges.keys()) this.#lastChanges.set(resource, version);
    this.compact();
  }

  checkPreconditions(
    { resource, name }: ObjectAddress,
    { metadata }: SimObject,
    precondition: { readonly uid: string; readonly version: string },
  ): void {
    if (precondition.uid !== '' && precondition.uid !== metadata.uid) {
      const reason = `Precondition failed: UID in precondition: ${precondition.uid}, UID in object meta: ${metadata.uid}`;
      throw conflictError(qualifiedName(resource), name, reason);
    }
    if (precondition.version !== '' && precondition.version !== metadata.resourceVersion) {
      const reason =
        'the object has been modified; please apply your changes to the latest version and try again';
      throw conflictError(qualifiedName(resource), name, reason);
    }
  }

  #objectsOf(resource: Resource): Map<string, SimObject> {
    const found = this.#objects.get(resource) ?? new Map<string, SimObject>();
    this.#objects.set(resource, found);
    return found;
  }

  #nextVersion(): string {
    this.#version += 1;
    return String(this.#version);
  }

  // oxlint-disable-next-line max-params -- the parts of one change
  #put(
    type: ObjectChange['type'],
    resource: Resource,
    object: SimObject,
    previous?: SimObject,
  ): SimObject {
    if (this.#isDryRun) return object;
    this.#objectsOf(resource).set(objectKey(object.metadata), object);
    this.#recordChange({
      version: this.#version,
      type,
      resource,
      object,
      ...(previous && { previous }),
    });
    return object;
  }

  #recordChange(change: ObjectChange): void {
    this.#log.push(change);
    this.#sorted.delete(change.resource);
    this.#lastChanges.set(change.resource, change.version);
    if (this.#log.length > 2 * MAX_LOG_LENGTH) {
      this.#log = this.#log.slice(MAX_LOG_LENGTH);
      this.#compactedVersion = (this.#log[0]?.version ?? 1) - 1;
    }
    this.#undelivered.push(change);
    if (!this.#isDelivering) this.#deliver();
  }

  /** In the order of the versions, also when a watcher writes. */
  #deliver(): void {
    this.#isDelivering = true;
    try {
      for (let next = this.#undelivered.shift(); next; next = this.#undelivered.shift()) {
        for (const onChange of this.#watchers) onChange(next);
      }
    } finally {
      this.#isDelivering = false;
    }
  }
}

/** The fields whose changes `metadata.generation` counts. */
function versionedFields({ custom, hasStatus }: Resource, object: JsonObject): JsonObject {
  if (custom === undefined) return objectField(object, 'spec');
  const rest = withoutTypeAndMetadata(object);
  const { status: _status, ...withoutStatus } = rest;
  return hasStatus ? withoutStatus : rest;
}

/** Fields of the metadata that only the server sets. */
function serverFields(metadata: SimObjectMeta): JsonObject {
  const { namespace, deletionTimestamp, deletionGracePeriodSeconds, generation } = metadata;
  return {
    ...(namespace !== undefined && { namespace }),
    ...(generation !== undefined && { generation }),
    ...(deletionTimestamp !== undefined && { deletionTimestamp, deletionGracePeriodSeconds }),
  };
}

function isReleased(object: SimObject): boolean {
  const { metadata, kind } = object;
  if (metadata.deletionTimestamp === undefined) return false;
  if (numberField(metadata, 'deletionGracePeriodSeconds', 0) > 0) return false;
  const isKept =
    kind === 'Namespace' && textList(objectField(object, 'spec'), 'finalizers').length > 0;
  return !isKept && textList(metadata, 'finalizers').length === 0;
}

function objectKey({
  namespace = '',
  name,
}: {
  readonly namespace?: string;
  readonly name: string;
}): string {
  return `${namespace}/${name}`;
}
