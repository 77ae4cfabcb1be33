// SPDX-License-Identifier: Apache-2.0
// Writes records to their objects: one write per object at a time, each a compare-and-set on the resource version.
import type { Lease } from '../../model/lease.ts';
import type { Clock } from '../../ports/clock.ts';
import {
  asPvescalerError,
  Bug,
  Conflict,
  LostLeadership,
  PvescalerError,
} from '../../ports/errors.ts';
import type { CollectionName, RecordKinds } from '../../ports/record-validators.ts';
import type { Versioned, WriteOptions } from '../../ports/store.ts';
import { API_VERSION, type ObjectKind, type RecordParts } from './kinds.ts';
import { mayHaveBeenSent, type ObjectClient, type WriteOutcome } from './object-client.ts';
import { type ObjectCopy, readServerObject, type ServerObject } from './object-copy.ts';
import { objectName } from './object-names.ts';
import type { RecordCopy } from './record-copy.ts';
import { toContent, toObject } from './record-objects.ts';
import { isEqualJson } from './schema.ts';

/** An object that other clients change all the time, for example by annotations, is given up. */
const MAX_ATTEMPTS = 8;
/** Writes of many objects may be due at the same time, and each one in progress has a connection. */
const MAX_CONCURRENT_FLUSHES = 16;

export interface RecordWrite<N extends CollectionName> extends WriteOptions {
  readonly collection: N;
  readonly key: string;
  /** Undefined: the record is removed. */
  readonly value: RecordKinds[N] | undefined;
  /** Throws when the record is not as the caller expects it. Called again after each refused attempt. */
  readonly check: (current: Versioned<RecordKinds[N]> | undefined) => void;
}

interface ObjectWriterOptions {
  readonly kind: ObjectKind;
  readonly client: ObjectClient;
  readonly copy: ObjectCopy;
  readonly records: RecordCopy;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly assertHeld: (fence: Lease) => Promise<void>;
  /** Receives the monotonic time at which it is due. */
  readonly onDeferred: (dueAt: number) => void;
  readonly onError: (error: PvescalerError) => void;
}

export class ObjectWriter {
  readonly #options: ObjectWriterOptions;
  readonly #queues = new Map<string, Promise<unknown>>();
  /** Creations whose result is not known. */
  readonly #unsure = new Map<string, RecordParts>();

  constructor(options: ObjectWriterOptions) {
    this.#options = options;
  }

  write<N extends CollectionName>(
    write: RecordWrite<N>,
  ): Promise<Versioned<RecordKinds[N]> | undefined> {
    const name = objectName(write.key);
    return this.#inTurn(name, async () => {
      const { records, assertHeld } = this.#options;
      const { collection, key, fence, check } = write;
      if (fence !== undefined) await assertHeld(fence);
      const before = records.get(collection, key);
      check(before);
      if ((write.deferMs ?? 0) > 0) this.#defer(name, write);
      else await this.#writeNow(name, write);
      const after = records.get(collection, key);
      // An equal value is a write too.
      if (write.value !== undefined && after !== undefined && after.revision === before?.revision) {
        records.set(collection, key, after.value);
      }
      return records.get(collection, key);
    });
  }

  /** Monotonic times at which deferred writes are due. */
  get dueTimes(): readonly number[] {
    const { copy } = this.#options;
    return copy.deferredNames.map((name) => copy.dueAt(name));
  }

  /** Sends deferred writes; with a lease, only those of that lease. Errors are reported. */
  flush(fence?: Lease): Promise<void> {
    const { copy } = this.#options;
    return this.#flushIf(
      (name) => fence === undefined || copy.deferredFence(name)?.token === fence.token,
    );
  }

  /** Sends what is due at that monotonic time. Errors are reported. */
  flushDue(now: number): Promise<void> {
    const { copy } = this.#options;
    return this.#flushIf((name) => copy.dueAt(name) <= now);
  }

  async #flushIf(isDue: (name: string) => boolean): Promise<void> {
    const names = this.#options.copy.deferredNames.filter(isDue).values();
    const flushes = Array.from({ length: MAX_CONCURRENT_FLUSHES }, () => this.#flushEach(names));
    await Promise.all(flushes);
  }

  /** The iterator is shared. Ends when the API server does not answer: the rest would take as long, one after the other. */
  async #flushEach(names: Iterable<string>): Promise<void> {
    for (const name of names) {
      try {
        await this.#inTurn(name, () => this.#flushObject(name));
      } catch (cause) {
        const error = asPvescalerError(cause);
        this.#options.onError(error);
        if (isTransient(error)) return;
      }
    }
  }

  #inTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#queues.get(name) ?? Promise.resolve()).then(work);
    const settled = turn
      .catch(() => undefined)
      .finally(() => {
        if (this.#queues.get(name) === settled) this.#queues.delete(name);
      });
    this.#queues.set(name, settled);
    return turn;
  }

  #defer<N extends CollectionName>(name: string, write: RecordWrite<N>): void {
    const { copy, records, clock, onDeferred } = this.#options;
    const { collection, key, value, fence, deferMs = 0 } = write;
    this.#assertValid(name);
    const dueAt = clock.monotonic() + deferMs;
    copy.defer(name, collection, { key, value, fence, dueAt });
    if (value === undefined) records.delete(collection, key);
    else records.set(collection, key, value);
    onDeferred(dueAt);
  }

  async #writeNow<N extends CollectionName>(name: string, write: RecordWrite<N>): Promise<void> {
    const { copy, records } = this.#options;
    const { collection, key, value, fence, check } = write;
    const isFenced = fence !== undefined;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      this.#assertValid(name);
      const parts = { ...copy.visibleParts(name), [collection]: value };
      if (await this.#send({ name, key, parts, isFenced })) return;
      check(records.get(collection, key));
    }
    throw new Conflict(
      'KUBERNETES_OBJECT_CHANGED',
      `${this.#options.kind.kind} ${name} keeps changing`,
    );
  }

  /** Gives up deferred writes whose lease is lost: the next term begins with what is stored. */
  async revertLost(): Promise<void> {
    for (const name of this.#options.copy.deferredNames) {
      await this.#inTurn(name, () => this.#revertIfLost(name)).catch((error: unknown) => {
        if (!(error instanceof LostLeadership)) throw error;
      });
    }
  }

  async #revertIfLost(name: string): Promise<void> {
    const { copy, assertHeld } = this.#options;
    const fence = copy.deferredFence(name);
    try {
      if (fence !== undefined) await assertHeld(fence);
    } catch (error) {
      if (error instanceof LostLeadership) copy.revertDeferred(name);
      throw error;
    }
  }

  async #flushObject(name: string): Promise<void> {
    const { copy } = this.#options;
    await this.#revertIfLost(name);
    const isFenced = copy.deferredFence(name) !== undefined;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const key = copy.deferredKey(name);
      if (key === undefined) return;
      // Waits until it is corrected.
      if (copy.get(name)?.problem !== undefined) return;
      const target = { name, key, parts: copy.visibleParts(name), isFenced };
      // The deferred writes together change nothing, for example a new record that has been removed again.
      if (this.#isWritten(target, !this.#unsure.has(name))) return;
      if (await this.#send(target)) return;
    }
  }

  /** False when the object was not as expected; then it has been read again. */
  async #send(target: Target): Promise<boolean> {
    const { copy } = this.#options;
    const { name, parts } = target;
    // An earlier creation may have taken effect, although its response was lost.
    if (this.#unsure.has(name) && copy.get(name) === undefined) await this.#readAgain(name);
    try {
      const outcome = await this.#request(target, copy.get(name));
      if (outcome !== 'refused') {
        this.#confirm(target, outcome);
        return true;
      }
    } catch (error) {
      if (!isOutcomeUnknown(error)) throw error;
      this.#unsure.set(name, parts);
      const isRead = await this.#readAgain(name).then(
        () => true,
        () => false,
      );
      if (!this.#isWritten(target, isRead)) throw error;
      return true;
    }
    await this.#readAgain(name);
    // An earlier attempt took effect, although its request failed.
    const isOwn = this.#unsure.has(name) && isEqualJson(this.#unsure.get(name), parts);
    return isOwn && this.#isWritten(target, true);
  }

  async #request(
    { name, key, parts, isFenced }: Target,
    base: ServerObject | undefined,
  ): Promise<WriteOutcome> {
    const { kind, client, copy } = this.#options;
    const isEmpty = kind.parts.every(({ collection }) => parts[collection] === undefined);
    const isOver = isEmpty || kind.isOver?.(parts) === true;
    if (base === undefined) {
      if (isOver || copy.isRemembered(name)) return {};
      const created = await client.create(toObject(kind, key, parts), isFenced);
      return this.#withStatus({ name, key, parts, isFenced }, created);
    }
    const { uid, version, metadata, spec } = base;
    const resourceVersion = String(version);
    const content = isOver ? undefined : toContent(kind, { key, parts, spec: spec ?? {} });
    if (content === undefined) {
      const outcome = await client.delete(name, { uid, resourceVersion }, isFenced);
      if (isOver || outcome === 'refused') return outcome;
      // What cannot be changed has changed: another object takes its place.
      copy.confirmAbsent(name);
      return this.#request({ name, key, parts, isFenced }, undefined);
    }
    const object = {
      apiVersion: API_VERSION,
      kind: kind.kind,
      metadata: { ...metadata, name, uid, resourceVersion },
      ...content,
    };
    return client.replace(name, object, isFenced);
  }

  /** Until its status is written, `kubectl get` shows none of a new object. The annotation has it, so this may fail. */
  async #withStatus(target: Target, created: WriteOutcome): Promise<WriteOutcome> {
    const { kind, client } = this.#options;
    const { name, key, parts, isFenced } = target;
    if (created === 'refused' || created.object === undefined) return created;
    if (kind.isStatusDue?.(parts) !== true) return created;
    const { metadata, spec } = created.object;
    const { uid = '', resourceVersion = '' } = metadata;
    const content = toContent(kind, { key, parts, spec });
    const object = {
      apiVersion: API_VERSION,
      kind: kind.kind,
      metadata: { name, uid, resourceVersion },
      ...content,
    };
    const written = await client.replace(name, object, isFenced).catch(() => 'refused' as const);
    return written === 'refused' ? created : written;
  }

  #confirm({ name, key, parts }: Target, { object }: Exclude<WriteOutcome, 'refused'>): void {
    const { copy, kind } = this.#options;
    this.#unsure.delete(name);
    copy.clearDeferred(name);
    if (object === undefined) return copy.remember(name, key, parts);
    const written = readServerObject(kind, object);
    copy.confirm(name, written);
    if (written.problem === undefined) return;
    const message = `${kind.kind} ${name} was not stored as it was written: ${written.problem}`;
    throw new Bug('UNEXPECTED_ANSWER', message);
  }

  async #readAgain(name: string): Promise<void> {
    const { copy, client, kind } = this.#options;
    const before = copy.get(name);
    const object = await client.read(name);
    if (object === undefined) copy.confirmAbsent(name);
    else copy.confirmRead(name, readServerObject(kind, object), before);
  }

  /** Whether the object has these records. `isCurrent`: whether an object that is not known does not exist. */
  #isWritten({ name, key, parts }: Target, isCurrent: boolean): boolean {
    const { copy, kind } = this.#options;
    const object = copy.get(name);
    if (object === undefined && !isCurrent) return false;
    const isOver = object === undefined && kind.isOver?.(parts) === true;
    const isSame = kind.parts.every(({ collection }) =>
      isEqualJson(object?.parts[collection], parts[collection]),
    );
    if (isOver) copy.remember(name, key, parts);
    else if (!isSame) return false;
    this.#unsure.delete(name);
    copy.clearDeferred(name);
    return true;
  }

  #assertValid(name: string): void {
    const { copy, kind } = this.#options;
    const problem = copy.get(name)?.problem;
    if (problem === undefined) return;
    throw new Conflict('RECORD_INVALID', `${kind.kind} ${name} cannot be read: ${problem}`);
  }
}

interface Target {
  readonly name: string;
  readonly key: string;
  readonly parts: RecordParts;
  readonly isFenced: boolean;
}

function isOutcomeUnknown(error: unknown): boolean {
  return isTransient(error) && mayHaveBeenSent(error);
}

function isTransient(error: unknown): boolean {
  return (
    error instanceof PvescalerError && (error.class === 'Unreachable' || error.class === 'TimedOut')
  );
}
