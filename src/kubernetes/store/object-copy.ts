// SPDX-License-Identifier: Apache-2.0
// The objects of one kind as this process knows them: what the watch has delivered, this process's own writes that the
// watch has not delivered yet, and deferred writes that have not been sent yet.
import type { Lease } from '../../model/lease.ts';
import type { CollectionName, RecordKinds } from '../../ports/record-validators.ts';
import type { ObjectMeta } from '../objects.ts';
import type { Reflector } from '../watch/reflector.ts';
import type { ObjectKind, RecordParts } from './kinds.ts';
import { objectName, recordKey } from './object-names.ts';
import type { RecordCopy } from './record-copy.ts';
import { fromObject, type RecordObject } from './record-objects.ts';
import { isEqualJson, type JsonRecord } from './schema.ts';

/** An object of the API server at one resource version. */
export interface ServerObject {
  readonly key: string;
  readonly uid: string;
  readonly version: number;
  /** What a replacement must repeat; empty where only the status is ever replaced. */
  readonly metadata: ObjectMeta;
  readonly spec: JsonRecord | undefined;
  readonly parts: RecordParts;
  /** Why its records cannot be read. */
  readonly problem?: string;
}

export function readServerObject(kind: ObjectKind, object: RecordObject): ServerObject {
  const { metadata, spec } = object;
  const { name = '', uid = '', resourceVersion = '', managedFields: _, ...kept } = metadata;
  const key = recordKey(metadata);
  const parsed = fromObject(kind, object);
  const problem = objectName(key) === name ? parsed : { ok: false, problem: KEY_PROBLEM };
  return {
    key,
    uid,
    version: Number(resourceVersion),
    metadata: kind.hasStatusSubresource ? {} : kept,
    spec,
    parts: parsed.ok ? parsed.value : {},
    ...('problem' in problem && { problem: problem.problem }),
  };
}

const KEY_PROBLEM = 'its name does not belong to its key';

interface OwnWrite {
  readonly uid: string;
  readonly version: number;
  /** Undefined: this process deleted it. */
  readonly object: ServerObject | undefined;
}

interface DeferredWrite {
  readonly key: string;
  /** Undefined: the record is removed. */
  readonly value: RecordKinds[CollectionName] | undefined;
  readonly fence: Lease | undefined;
  /** Monotonic. */
  readonly dueAt: number;
}

type Remembered = Pick<ServerObject, 'key' | 'parts'>;

interface ObjectCopyOptions {
  readonly kind: ObjectKind;
  readonly namespace: string;
  readonly records: RecordCopy;
  readonly reflector: () => Reflector<ServerObject>;
  /** Called when the watch has delivered a deletion: the records stay visible until `release`. Absent: they do not. */
  readonly onHeld?: ((name: string) => void) | undefined;
}

export class ObjectCopy {
  readonly #options: ObjectCopyOptions;
  readonly #objects = new Map<string, ServerObject>();
  readonly #own = new Map<string, OwnWrite>();
  /** Records without an object, which only this process remembers. */
  readonly #remembered = new Map<string, Remembered>();
  readonly #deferred = new Map<string, Map<CollectionName, DeferredWrite>>();

  constructor(options: ObjectCopyOptions) {
    this.#options = options;
  }

  get(name: string): ServerObject | undefined {
    return this.#objects.get(name);
  }

  /** The records of the object as this process sees them. */
  visibleParts(name: string): RecordParts {
    const parts: Partial<Record<CollectionName, unknown>> = { ...this.#knownParts(name) };
    for (const [collection, { value }] of this.#deferred.get(name) ?? []) parts[collection] = value;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each value is a record of its collection
    return parts as RecordParts;
  }

  /** The watch has delivered changes of these objects, or a list has ended. */
  reflect(names: readonly string[]): void {
    for (const name of new Set([...names, ...this.#own.keys()])) this.#settle(name);
  }

  /** The API server was restored from a backup, and listed again: its versions and those of own writes cannot be compared. */
  forgetOwnWrites(): void {
    const names = [...this.#own.keys()];
    this.#own.clear();
    this.reflect(names);
  }

  /** The API server has confirmed a write of this process, or returned the object. */
  confirm(name: string, object: ServerObject): void {
    const { uid, version } = object;
    this.#own.set(name, { uid, version, object });
    this.#settle(name);
  }

  /** The object was read after the process knew `before`. */
  confirmRead(name: string, object: ServerObject, before: ServerObject | undefined): void {
    const isOlder = before?.uid === object.uid && object.version < before.version;
    // The API server was restored from a backup, and had a higher version again when the watch went on.
    if (isOlder) this.#options.reflector().relistAfterRestore();
    this.confirm(name, object);
  }

  isRemembered(name: string): boolean {
    return this.#remembered.has(name);
  }

  /** The object was deleted, and its records stay visible to this process; without records, they do not. */
  remember(name: string, key: string, parts: RecordParts): void {
    const isEmpty = Object.values(parts).every((part) => part === undefined);
    if (isEmpty) this.#remembered.delete(name);
    else this.#remembered.set(name, { key, parts });
    this.confirmAbsent(name);
    for (const { collection } of this.#options.kind.parts) {
      if (!this.#objects.has(name)) this.#show(collection, key, parts[collection]);
    }
  }

  /** Everything that has no object is over. */
  forgetRemembered(): void {
    for (const [name, { key }] of this.#remembered) this.remember(name, key, {});
  }

  /** Ends what `onHeld` has begun. */
  release(name: string): void {
    const held = this.#remembered.get(name);
    if (held !== undefined) this.remember(name, held.key, {});
  }

  /** The object does not exist any more. */
  confirmAbsent(name: string): void {
    const known = this.#objects.get(name);
    if (known === undefined) return;
    this.#own.set(name, { uid: known.uid, version: known.version, object: undefined });
    this.#settle(name);
  }

  /** Takes the place of a deferred write of the same record, and is sent when the earlier one of the two is due. */
  defer(name: string, collection: CollectionName, write: DeferredWrite): void {
    const writes = this.#deferred.get(name) ?? new Map<CollectionName, DeferredWrite>();
    const dueAt = Math.min(writes.get(collection)?.dueAt ?? Infinity, write.dueAt);
    this.#deferred.set(name, writes.set(collection, { ...write, dueAt }));
  }

  /** Names of the objects with deferred writes. */
  get deferredNames(): readonly string[] {
    return [...this.#deferred.keys()];
  }

  deferredFence(name: string): Lease | undefined {
    return this.#deferredOf(name).find(({ fence }) => fence !== undefined)?.fence;
  }

  /** The key of the records with deferred writes; undefined if no write of the object is deferred. */
  deferredKey(name: string): string | undefined {
    return this.#deferredOf(name)[0]?.key;
  }

  /** When the first of its writes is due; Infinity if none is. */
  dueAt(name: string): number {
    return Math.min(...this.#deferredOf(name).map(({ dueAt }) => dueAt));
  }

  /** They were sent with the object. */
  clearDeferred(name: string): void {
    this.#deferred.delete(name);
  }

  /** They must not be sent: the records are again what the API server has. */
  revertDeferred(name: string): void {
    const reverted = this.#deferred.get(name) ?? [];
    this.#deferred.delete(name);
    const parts = this.#knownParts(name);
    for (const [collection, { key }] of reverted) this.#show(collection, key, parts[collection]);
  }

  #knownParts(name: string): RecordParts {
    return (this.#objects.get(name) ?? this.#remembered.get(name))?.parts ?? {};
  }

  #deferredOf(name: string): readonly DeferredWrite[] {
    return [...(this.#deferred.get(name)?.values() ?? [])];
  }

  #settle(name: string): void {
    const { namespace, reflector } = this.#options;
    const reflected = reflector().get(`${namespace}/${name}`);
    const own = this.#own.get(name);
    if (own !== undefined) {
      if (this.#isAhead(own, reflected)) return this.#apply(name, own.object);
      this.#own.delete(name);
    }
    if (reflected === undefined && this.#hold(name)) return;
    this.#apply(name, reflected);
  }

  /** Whether the watch has not delivered the own write yet. */
  #isAhead(own: OwnWrite, reflected: ServerObject | undefined): boolean {
    const reflector = this.#options.reflector();
    const isSameObject = reflected?.uid === own.uid;
    const isStillListed = own.object === undefined && isSameObject;
    const isOlder = isSameObject && reflected.version < own.version;
    const isPast = Math.max(reflector.version, reflected?.version ?? 0) >= own.version;
    // The API server was restored from a backup: otherwise the watch would have delivered it.
    if (isOlder && isPast) reflector.relistAfterRestore();
    return isOlder || isStillListed || !isPast;
  }

  #hold(name: string): boolean {
    const object = this.#objects.get(name);
    const { onHeld } = this.#options;
    if (object === undefined || onHeld === undefined) return false;
    this.#objects.delete(name);
    this.#remembered.set(name, object);
    onHeld(name);
    return true;
  }

  #apply(name: string, next: ServerObject | undefined): void {
    const before = this.#objects.get(name);
    const object = next?.problem === undefined ? next : withLastRecords(next, before);
    if (object === before) return;
    this.#set(name, object);
    const key = (object ?? before)?.key ?? name;
    for (const { collection } of this.#options.kind.parts) {
      // A deferred write waits on, unless another process has changed the record.
      if (!isSameRecord(collection, before, object)) this.#cancelDeferred(name, collection);
      // A record of another object is another record, even if it is equal.
      if (isOtherObject(before, object)) this.#options.records.delete(collection, key);
      this.#show(collection, key, this.visibleParts(name)[collection]);
    }
  }

  #set(name: string, object: ServerObject | undefined): void {
    if (object === undefined) {
      this.#objects.delete(name);
      return;
    }
    this.#objects.set(name, object);
    this.#remembered.delete(name);
  }

  #cancelDeferred(name: string, collection: CollectionName): void {
    const deferred = this.#deferred.get(name);
    deferred?.delete(collection);
    if (deferred?.size === 0) this.#deferred.delete(name);
  }

  #show(
    collection: CollectionName,
    key: string,
    value: RecordKinds[CollectionName] | undefined,
  ): void {
    const { records } = this.#options;
    if (value === undefined) records.delete(collection, key);
    else if (!isEqualJson(records.get(collection, key)?.value, value))
      records.set(collection, key, value);
  }
}

function isOtherObject(one: ServerObject | undefined, two: ServerObject | undefined): boolean {
  return one !== undefined && two !== undefined && one.uid !== two.uid;
}

function isSameRecord(
  collection: CollectionName,
  one: ServerObject | undefined,
  two: ServerObject | undefined,
): boolean {
  return !isOtherObject(one, two) && isEqualJson(one?.parts[collection], two?.parts[collection]);
}

/** The last valid records of an object that has become invalid stay in effect. */
function withLastRecords(object: ServerObject, before: ServerObject | undefined): ServerObject {
  return before?.uid === object.uid ? { ...object, parts: before.parts } : object;
}
