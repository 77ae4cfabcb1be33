// SPDX-License-Identifier: Apache-2.0
// Objects with one increasing resource version for all resources, and the change log that serves watches.
import type { Clock } from '../../../ports/clock.ts';
import type { Random } from '../../../ports/random.ts';
import { ApiError, conflictError, expiredError, notFoundError } from './api-error.ts';
import type { JsonObject, SimObject, SimObjectMeta } from './objects.ts';
import { isObject, textField } from './objects.ts';
import type { Resource } from './resources.ts';

export interface ObjectChange {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly resource: Resource;
  readonly object: SimObject;
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
  readonly #watchers = new Set<(change: ObjectChange) => void>();
  #log: ObjectChange[] = [];
  #version = 1;
  readonly #lastChanges = new Map<Resource, number>();
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

  list(resource: Resource, namespace: string): readonly SimObject[] {
    const all = [...this.#objectsOf(resource).values()];
    const selected =
      namespace === '' ? all : all.filter(({ metadata }) => metadata.namespace === namespace);
    return selected.sort((one, other) =>
      objectKey(one.metadata) < objectKey(other.metadata) ? -1 : 1,
    );
  }

  find(address: ObjectAddress): SimObject | undefined {
    return this.#objectsOf(address.resource).get(objectKey(address));
  }

  get(address: ObjectAddress): SimObject {
    const found = this.find(address);
    if (found === undefined) throw notFoundError(address.resource.plural, address.name);
    return found;
  }

  create(address: ObjectAddress, body: JsonObject): SimObject {
    const { resource, name, namespace } = address;
    if (this.find(address) !== undefined) {
      throw new ApiError(409, 'AlreadyExists', `${resource.plural} "${name}" already exists`);
    }
    const given = isObject(body['metadata']) ? body['metadata'] : {};
    const metadata: SimObjectMeta = {
      ...given,
      name,
      ...(namespace !== '' && { namespace }),
      uid: this.#random.uuid(),
      resourceVersion: this.#nextVersion(),
      creationTimestamp: new Date(this.#clock.now()).toISOString().replace(/\.\d+Z/, 'Z'),
    };
    const { apiVersion, kind } = resource;
    return this.#put('ADDED', resource, { ...body, apiVersion, kind, metadata });
  }

  /** The uid and resource version in the body, if present, are preconditions. */
  replace(address: ObjectAddress, body: JsonObject): SimObject {
    const current = this.get(address);
    const given = isObject(body['metadata']) ? body['metadata'] : {};
    this.#checkPreconditions(address, current, {
      uid: textField(given, 'uid'),
      version: textField(given, 'resourceVersion'),
    });
    const { uid, name, creationTimestamp } = current.metadata;
    const metadata: SimObjectMeta = { ...given, name, uid, creationTimestamp, resourceVersion: '' };
    const { apiVersion, kind } = address.resource;
    const next = { ...body, apiVersion, kind, metadata };
    const isSame =
      JSON.stringify({
        ...next,
        metadata: { ...metadata, resourceVersion: current.metadata.resourceVersion },
      }) === JSON.stringify(current);
    if (isSame) return current;
    const version = this.#nextVersion();
    return this.#put('MODIFIED', address.resource, {
      ...next,
      metadata: { ...metadata, resourceVersion: version },
    });
  }

  delete(address: ObjectAddress, uid: string): SimObject {
    const current = this.get(address);
    this.#checkPreconditions(address, current, { uid, version: '' });
    const resourceVersion = this.#nextVersion();
    const last = { ...current, metadata: { ...current.metadata, resourceVersion } };
    this.#objectsOf(address.resource).delete(objectKey(address));
    this.#recordChange({
      version: this.#version,
      type: 'DELETED',
      resource: address.resource,
      object: last,
    });
    return last;
  }

  /** Replays the changes after a version, then reports new ones. Returns the function that ends the watch. */
  watch(after: number, onChange: (change: ObjectChange) => void): () => void {
    if (after < this.#compactedVersion) throw expiredError();
    for (const change of this.#log) if (change.version > after) onChange(change);
    this.#watchers.add(onChange);
    return () => this.#watchers.delete(onChange);
  }

  /** Discards the change log: watches from an earlier version receive 410. */
  compact(): void {
    this.#compactedVersion = this.#version;
    this.#log = [];
  }

  #checkPreconditions(
    { resource, name }: ObjectAddress,
    { metadata }: SimObject,
    precondition: { readonly uid: string; readonly version: string },
  ): void {
    if (precondition.uid !== '' && precondition.uid !== metadata.uid) {
      const reason = `Precondition failed: UID in precondition: ${precondition.uid}, UID in object meta: ${metadata.uid}`;
      throw conflictError(resource.plural, name, reason);
    }
    if (precondition.version !== '' && precondition.version !== metadata.resourceVersion) {
      const reason =
        'the object has been modified; please apply your changes to the latest version and try again';
      throw conflictError(resource.plural, name, reason);
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

  #put(type: ObjectChange['type'], resource: Resource, object: SimObject): SimObject {
    this.#objectsOf(resource).set(objectKey(object.metadata), object);
    this.#recordChange({ version: this.#version, type, resource, object });
    return object;
  }

  #recordChange(change: ObjectChange): void {
    this.#log.push(change);
    this.#lastChanges.set(change.resource, change.version);
    if (this.#log.length > 2 * MAX_LOG_LENGTH) {
      this.#log = this.#log.slice(MAX_LOG_LENGTH);
      this.#compactedVersion = (this.#log[0]?.version ?? 1) - 1;
    }
    for (const onChange of this.#watchers) onChange(change);
  }
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
