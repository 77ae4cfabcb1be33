// SPDX-License-Identifier: Apache-2.0
// Objects with one growing version for all of them, and the log of changes that watches are served from.
import type { Clock } from '../../../ports/clock.ts';
import type { Random } from '../../../ports/random.ts';
import { ApiError, conflict, expired, notFound } from './api-error.ts';
import type { JsonObject, SimMeta, SimObject } from './objects.ts';
import { isObject, textIn } from './objects.ts';
import type { Resource } from './resources.ts';

export interface Change {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly resource: Resource;
  readonly object: SimObject;
}

export interface Address {
  readonly resource: Resource;
  /** Empty for what is in no namespace. */
  readonly namespace: string;
  readonly name: string;
}

/** How much of the log is remembered, like the real one's watch cache. */
const LONGEST_LOG = 10_000;

export class Store {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #objects = new Map<Resource, Map<string, SimObject>>();
  readonly #watchers = new Set<(change: Change) => void>();
  #log: Change[] = [];
  #version = 1;
  readonly #lastChanges = new Map<Resource, number>();
  /** Changes up to this version are forgotten. */
  #forgotten = 0;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  get version(): number {
    return this.#version;
  }

  /** Version of the last change of such an object. */
  lastChange(resource: Resource): number {
    return this.#lastChanges.get(resource) ?? 0;
  }

  list(resource: Resource, namespace: string): readonly SimObject[] {
    const all = [...this.#of(resource).values()];
    const wanted =
      namespace === '' ? all : all.filter(({ metadata }) => metadata.namespace === namespace);
    return wanted.sort((one, other) => (keyOf(one.metadata) < keyOf(other.metadata) ? -1 : 1));
  }

  find(address: Address): SimObject | undefined {
    return this.#of(address.resource).get(keyOf(address));
  }

  get(address: Address): SimObject {
    const found = this.find(address);
    if (found === undefined) throw notFound(address.resource.plural, address.name);
    return found;
  }

  create(address: Address, body: JsonObject): SimObject {
    const { resource, name, namespace } = address;
    if (this.find(address) !== undefined) {
      throw new ApiError(409, 'AlreadyExists', `${resource.plural} "${name}" already exists`);
    }
    const given = isObject(body['metadata']) ? body['metadata'] : {};
    const metadata: SimMeta = {
      ...given,
      name,
      ...(namespace !== '' && { namespace }),
      uid: this.#random.uuid(),
      resourceVersion: this.#next(),
      creationTimestamp: new Date(this.#clock.now()).toISOString().replace(/\.\d+Z/, 'Z'),
    };
    const { apiVersion, kind } = resource;
    return this.#put('ADDED', resource, { ...body, apiVersion, kind, metadata });
  }

  /** The caller's metadata is checked against what is there: uid and version are preconditions. */
  replace(address: Address, body: JsonObject): SimObject {
    const current = this.get(address);
    const given = isObject(body['metadata']) ? body['metadata'] : {};
    this.#check(address, current, {
      uid: textIn(given, 'uid'),
      version: textIn(given, 'resourceVersion'),
    });
    const { uid, name, creationTimestamp } = current.metadata;
    const metadata: SimMeta = { ...given, name, uid, creationTimestamp, resourceVersion: '' };
    const { apiVersion, kind } = address.resource;
    const wanted = { ...body, apiVersion, kind, metadata };
    const isSame =
      JSON.stringify({
        ...wanted,
        metadata: { ...metadata, resourceVersion: current.metadata.resourceVersion },
      }) === JSON.stringify(current);
    if (isSame) return current;
    const version = this.#next();
    return this.#put('MODIFIED', address.resource, {
      ...wanted,
      metadata: { ...metadata, resourceVersion: version },
    });
  }

  delete(address: Address, uid: string): SimObject {
    const current = this.get(address);
    this.#check(address, current, { uid, version: '' });
    const resourceVersion = this.#next();
    const last = { ...current, metadata: { ...current.metadata, resourceVersion } };
    this.#of(address.resource).delete(keyOf(address));
    this.#tell({
      version: this.#version,
      type: 'DELETED',
      resource: address.resource,
      object: last,
    });
    return last;
  }

  /** Everything after a version, and then whatever comes. */
  watch(after: number, onChange: (change: Change) => void): () => void {
    if (after < this.#forgotten) throw expired();
    for (const change of this.#log) if (change.version > after) onChange(change);
    this.#watchers.add(onChange);
    return () => this.#watchers.delete(onChange);
  }

  /** The past is forgotten: who is behind has to read anew. */
  forget(): void {
    this.#forgotten = this.#version;
    this.#log = [];
  }

  // oxlint-disable-next-line max-params -- what is checked against what
  #check(
    { resource, name }: Address,
    { metadata }: SimObject,
    wanted: { readonly uid: string; readonly version: string },
  ): void {
    if (wanted.uid !== '' && wanted.uid !== metadata.uid) {
      const why = `Precondition failed: UID in precondition: ${wanted.uid}, UID in object meta: ${metadata.uid}`;
      throw conflict(resource.plural, name, why);
    }
    if (wanted.version !== '' && wanted.version !== metadata.resourceVersion) {
      const why =
        'the object has been modified; please apply your changes to the latest version and try again';
      throw conflict(resource.plural, name, why);
    }
  }

  #of(resource: Resource): Map<string, SimObject> {
    const found = this.#objects.get(resource) ?? new Map<string, SimObject>();
    this.#objects.set(resource, found);
    return found;
  }

  #next(): string {
    this.#version += 1;
    return String(this.#version);
  }

  // oxlint-disable-next-line max-params -- a row of the log
  #put(type: Change['type'], resource: Resource, object: SimObject): SimObject {
    this.#of(resource).set(keyOf(object.metadata), object);
    this.#tell({ version: this.#version, type, resource, object });
    return object;
  }

  #tell(change: Change): void {
    this.#log.push(change);
    this.#lastChanges.set(change.resource, change.version);
    if (this.#log.length > 2 * LONGEST_LOG) {
      this.#log = this.#log.slice(LONGEST_LOG);
      this.#forgotten = (this.#log[0]?.version ?? 1) - 1;
    }
    for (const onChange of this.#watchers) onChange(change);
  }
}

function keyOf({
  namespace = '',
  name,
}: {
  readonly namespace?: string;
  readonly name: string;
}): string {
  return `${namespace}/${name}`;
}
