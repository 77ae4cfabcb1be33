// SPDX-License-Identifier: Apache-2.0
import { Bug, Conflict, NotFound } from '../../ports/errors.ts';
import type { InFlightCalls } from '../../ports/in-flight-calls.ts';
import {
  assertKey,
  type CollectionName,
  decodeRecord,
  encodeRecord,
  RECORD_VALIDATORS,
  type RecordKinds,
} from '../../ports/record-validators.ts';
import type { Collection, ReadOptions, Versioned, WriteOptions } from '../../ports/store.ts';
import type { Validator } from '../../ports/validator.ts';
import type { ObjectWriter } from './object-writer.ts';
import type { RecordCopy } from './record-copy.ts';

interface RecordCollectionOptions<N extends CollectionName> {
  readonly collection: N;
  readonly records: RecordCopy;
  readonly writer: ObjectWriter;
  readonly calls: InFlightCalls;
}

export class RecordCollection<N extends CollectionName> implements Collection<RecordKinds[N]> {
  readonly #options: RecordCollectionOptions<N>;

  constructor(options: RecordCollectionOptions<N>) {
    this.#options = options;
  }

  get(key: string, options: ReadOptions = {}): Promise<Versioned<RecordKinds[N]> | undefined> {
    const { calls, records, collection } = this.#options;
    return calls.run(options.signal, async () => records.get(collection, key));
  }

  list(options: ReadOptions = {}): Promise<readonly Versioned<RecordKinds[N]>[]> {
    const { calls, records, collection } = this.#options;
    return calls.run(options.signal, async () => records.list(collection));
  }

  create(
    key: string,
    value: RecordKinds[N],
    options: WriteOptions = {},
  ): Promise<Versioned<RecordKinds[N]>> {
    const { collection } = this.#options;
    return this.#put(key, value, {
      ...options,
      check: (current) => {
        if (current === undefined) return;
        throw new Conflict('RECORD_EXISTS', `${collection} already contains ${key}`);
      },
    });
  }

  replace(
    seen: Versioned<RecordKinds[N]>,
    value: RecordKinds[N],
    options: WriteOptions = {},
  ): Promise<Versioned<RecordKinds[N]>> {
    return this.#put(seen.key, value, { ...options, check: this.#assertNewest(seen) });
  }

  async remove(seen: Versioned<RecordKinds[N]>, options: WriteOptions = {}): Promise<void> {
    const { calls, collection, writer } = this.#options;
    const check = this.#assertNewest(seen);
    const { key } = seen;
    await calls.run(options.signal, () =>
      writer.write({ ...options, collection, key, value: undefined, check }),
    );
  }

  #put(
    key: string,
    value: RecordKinds[N],
    options: WriteOptions & { readonly check: Check<RecordKinds[N]> },
  ): Promise<Versioned<RecordKinds[N]>> {
    const { calls, collection, writer } = this.#options;
    return calls.run(options.signal, async () => {
      assertKey(key);
      const copied = this.#copy(key, value);
      const written = await writer.write({ ...options, collection, key, value: copied });
      if (written !== undefined) return written;
      // Another process removed it right after the write.
      throw new NotFound('RECORD_NOT_FOUND', `${collection} no longer contains ${key}`);
    });
  }

  /** Separates the value from the caller's object. */
  #copy(key: string, value: RecordKinds[N]): RecordKinds[N] {
    const { collection } = this.#options;
    const validator: Validator<RecordKinds[N]> = RECORD_VALIDATORS[collection];
    const copied = decodeRecord(validator, encodeRecord(validator, value, `${collection} ${key}`));
    if (!copied.ok) throw new Bug('BUG', copied.problem);
    return copied.value;
  }

  #assertNewest({ key, revision }: Versioned<RecordKinds[N]>): Check<RecordKinds[N]> {
    const { collection } = this.#options;
    return (current) => {
      if (current === undefined)
        throw new NotFound('RECORD_NOT_FOUND', `${collection} no longer contains ${key}`);
      if (current.revision !== revision)
        throw new Conflict('RECORD_CHANGED', `${collection} ${key} was changed by another write`);
    };
  }
}

type Check<T> = (current: Versioned<T> | undefined) => void;
