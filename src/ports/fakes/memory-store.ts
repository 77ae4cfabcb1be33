// SPDX-License-Identifier: Apache-2.0
// The Store in memory, for tests. It stores JSON text like a database, so that no object is shared between caller and
// store. The contract suite tests it like the SQLite store.
import type { JournalEntry } from '../../model/journal-entry.ts';
import type { Lease } from '../../model/lease.ts';
import type { Clock } from '../clock.ts';
import { Bug } from '../errors.ts';
import { InFlightCalls, throwIfAborted } from '../in-flight-calls.ts';
import type { Journal, JournalRecord } from '../journal.ts';
import {
  type CollectionName,
  decodeRecord,
  encodeRecord,
  JOURNAL_VALIDATOR,
  RECORD_VALIDATORS,
  type RecordKinds,
} from '../record-validators.ts';

import type {
  Collection,
  ReadOptions,
  Store,
  StoreChanges,
  StoreIdentity,
  StoreLeases,
  Versioned,
} from '../store.ts';
import type { StoreObserver, StoreWrite } from '../store-write.ts';
import type { Validator } from '../validator.ts';
import { type JournalRow, MemoryStoreState, type StoredRecord } from './memory-store-state.ts';

/** Not a PvescalerError, because product code must not handle the end of its own process. */
export class SimulatedCrash extends Error {
  override readonly name = 'SimulatedCrash';
}

type Access = 'read' | 'write';

interface Call {
  readonly access: Access;
  readonly signal?: AbortSignal | undefined;
}

/** The result of a step and the write that it made, if any. */
interface Step<T> {
  readonly result: T;
  readonly write?: StoreWrite;
}

interface MemoryStoreOptions {
  readonly clock: Clock;
  readonly onWrite?: StoreObserver;
}

export class MemoryStore implements Store {
  readonly intents = this.#collection('intents');
  readonly machines = this.#collection('machines');
  readonly drains = this.#collection('drains');
  readonly pools = this.#collection('pools');
  readonly leases: StoreLeases = this.#leases();
  readonly journal: Journal = this.#journal();

  readonly #options: MemoryStoreOptions;
  readonly #state: MemoryStoreState;
  readonly #calls = new InFlightCalls();
  #failure: { readonly error: Error; readonly access: Access | 'any' } | undefined;
  #writesLeft = Number.POSITIVE_INFINITY;

  constructor(
    options: MemoryStoreOptions,
    state = new MemoryStoreState(() => options.clock.now()),
  ) {
    this.#options = options;
    this.#state = state;
  }

  /** Opens the same data again, as another process or the next process after a crash would. */
  reopen(options: Partial<MemoryStoreOptions> = {}): MemoryStore {
    return new MemoryStore({ ...this.#options, ...options }, this.#state);
  }

  /** A copy of the data as it is now, as a backup of the database has. */
  copy(): MemoryStore {
    return new MemoryStore(this.#options, this.#state.copy());
  }

  /** The next call of that kind rejects with this error and changes nothing. */
  failNext(error: Error, access: Access | 'any' = 'any'): void {
    this.#failure = { error, access };
  }

  /**
   * Simulates a crash after the n-th write from now: it becomes durable, but its call and all later calls reject with
   * SimulatedCrash. `reopen` sees the data. With zero, no write takes effect.
   */
  crashAfterWrites(n: number): void {
    this.#writesLeft = n;
  }

  /** Every process reads the same state. */
  synchronize({ signal }: ReadOptions = {}): Promise<void> {
    return this.#run({ access: 'read', signal }, () => ({ result: undefined }));
  }

  revision(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<number> {
    return this.#run({ access: 'read', signal: options.signal }, () => ({
      result: this.#state.revision,
    }));
  }

  changes(
    since: number | undefined,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<StoreChanges | undefined> {
    return this.#run({ access: 'read', signal: options.signal }, () => ({
      result: this.#changes(since),
    }));
  }

  #changes(since: number | undefined): StoreChanges | undefined {
    const removed = since === undefined ? [] : this.#state.removedSince(since);
    if (removed === undefined) return undefined;
    const of = <N extends CollectionName>(target: N): readonly Versioned<RecordKinds[N]>[] =>
      this.#state.since(target, since ?? 0).map((stored) => this.#versioned(target, stored));
    return {
      revision: this.#state.revision,
      intents: of('intents'),
      machines: of('machines'),
      drains: of('drains'),
      pools: of('pools'),
      removed,
    };
  }

  identity(candidate: StoreIdentity = {}): Promise<StoreIdentity> {
    return this.#run({ access: 'write' }, () => {
      const known = this.#state.identity;
      const identity = { ...candidate, ...known };
      if (Object.keys(identity).length === Object.keys(known).length) return { result: known };
      this.#state.identity = identity;
      return {
        result: identity,
        write: { target: 'installation', action: 'create', key: identity.id ?? '' },
      };
    });
  }

  close(): Promise<void> {
    return this.#calls.close(() => undefined);
  }

  #versioned<N extends CollectionName>(target: N, stored: StoredRecord): Versioned<RecordKinds[N]> {
    const validator: Validator<RecordKinds[N]> = RECORD_VALIDATORS[target];
    const known = this.#state.decoded[target].get(stored);
    if (known !== undefined) return known;
    const { key, json, revision } = stored;
    const record = Object.freeze({ key, value: decoded(validator, json), revision });
    this.#state.decoded[target].set(stored, record);
    return record;
  }

  #collection<N extends CollectionName>(target: N): Collection<RecordKinds[N]> {
    type T = RecordKinds[N];
    const validator: Validator<T> = RECORD_VALIDATORS[target];
    const encode = (key: string, value: T) => encodeRecord(validator, value, `${target} ${key}`);
    const versioned = (stored: StoredRecord): Versioned<T> => this.#versioned(target, stored);
    return {
      get: (key, { signal } = {}) =>
        this.#run({ access: 'read', signal }, () => {
          const stored = this.#state.get(target, key);
          return { result: stored && versioned(stored) };
        }),
      list: ({ signal } = {}) =>
        this.#run({ access: 'read', signal }, () => ({
          result: this.#state.list(target).map(versioned),
        })),
      create: (key, value, { fence, signal } = {}) =>
        this.#run({ access: 'write', signal }, () => {
          const json = encode(key, value);
          const stored = this.#state.create({ collection: target, key, fence }, json);
          return { result: versioned(stored), write: { target, action: 'create', key } };
        }),
      replace: ({ key, revision }, value, { fence, signal } = {}) =>
        this.#run({ access: 'write', signal }, () => {
          const json = encode(key, value);
          const stored = this.#state.replace({ collection: target, key, revision, fence }, json);
          return { result: versioned(stored), write: { target, action: 'replace', key } };
        }),
      remove: ({ key, revision }, { fence, signal } = {}) =>
        this.#run({ access: 'write', signal }, () => {
          this.#state.remove({ collection: target, key, revision, fence });
          return { result: undefined, write: { target, action: 'remove', key } };
        }),
    };
  }

  #leases(): StoreLeases {
    const target = 'leases';
    return {
      acquire: (request, { signal } = {}) =>
        this.#run({ access: 'write', signal }, () => ({
          result: this.#state.acquire(request),
          write: { target, action: 'acquire', key: request.name },
        })),
      renew: (lease, durationMs, { signal } = {}) =>
        this.#run({ access: 'write', signal }, () => ({
          result: this.#state.renew(lease, durationMs),
          write: { target, action: 'renew', key: lease.name },
        })),
      release: (lease: Lease) =>
        this.#run({ access: 'write' }, () => ({
          result: undefined,
          ...(this.#state.release(lease) && {
            write: { target, action: 'release', key: lease.name } as const,
          }),
        })),
      read: (name, { signal } = {}) =>
        this.#run({ access: 'read', signal }, () => ({ result: this.#state.lease(name) })),
    };
  }

  #journal(): Journal {
    const target = 'journal';
    return {
      append: (entry) =>
        this.#run({ access: 'write' }, () => {
          const row = this.#state.append(journalRow(entry));
          return {
            result: journalRecord(row),
            write: { target, action: 'append', key: String(row.sequence) },
          };
        }),
      read: (query = {}) =>
        this.#run({ access: 'read', signal: query.signal }, () => ({
          result: this.#state.journal(query).map(journalRecord),
        })),
      prune: ({ beforeMs, keep }) =>
        this.#run({ access: 'write' }, () => {
          const result = this.#state.prune(beforeMs, keep);
          return result === 0
            ? { result }
            : { result, write: { target, action: 'prune', key: String(result) } };
        }),
    };
  }

  #run<T>({ access, signal }: Call, step: () => Step<T>): Promise<T> {
    return this.#calls.run(signal, async () => {
      // A database never responds synchronously; a missing await must fail here too.
      await Promise.resolve();
      throwIfAborted(signal);
      this.#assertAlive();
      this.#failIfPlanned(access);
      const { result, write } = step();
      if (write !== undefined) this.#written(write);
      return result;
    });
  }

  #written(write: StoreWrite): void {
    this.#writesLeft -= 1;
    this.#options.onWrite?.(write);
    this.#assertAlive();
  }

  #assertAlive(): void {
    if (this.#writesLeft <= 0) throw new SimulatedCrash('the simulated process has crashed');
  }

  #failIfPlanned(access: Access): void {
    const failure = this.#failure;
    if (failure === undefined || (failure.access !== 'any' && failure.access !== access)) return;
    this.#failure = undefined;
    throw failure.error;
  }
}

function journalRow(entry: JournalEntry): Omit<JournalRow, 'sequence'> {
  const { pool, machine, node } = entry.subject;
  const json = encodeRecord(JOURNAL_VALIDATOR, entry, 'a journal entry');
  return { at: entry.at, pool, machine, node, json };
}

function journalRecord({ sequence, json }: JournalRow): JournalRecord {
  return Object.freeze({ ...decoded(JOURNAL_VALIDATOR, json), sequence });
}

function decoded<T>(validator: Validator<T>, json: string): T {
  const parsed = decodeRecord(validator, json);
  if (!parsed.ok) throw new Bug('BUG', parsed.problem);
  return parsed.value;
}
