// SPDX-License-Identifier: Apache-2.0
// The Store without a disk, for tests of everything above it. It keeps texts, as a database does, so that no
// object is shared between a caller and the store; the contract suite holds it and SQLite to the same words.
import type { JournalEntry } from '../../model/journal-entry.ts';
import type { Lease } from '../../model/lease.ts';
import type { Clock } from '../clock.ts';
import { Bug } from '../errors.ts';
import type { Journal, JournalRecord } from '../journal.ts';
import { decodeRecord, encodeRecord } from '../record-codec.ts';
import {
  type CollectionName,
  JOURNAL_SHAPE,
  RECORD_SHAPES,
  type RecordKinds,
} from '../record-shapes.ts';
import type { Shape } from '../shape.ts';
import type { Collection, Leases, Store, StoreChanges, Versioned } from '../store.ts';
import { StoreGate, throwIfAborted } from '../store-gate.ts';
import type { StoreObserver, StoreWrite } from '../store-write.ts';
import { type JournalRow, MemoryState, type StoredText } from './memory-state.ts';

/** Not one of the product's errors: code that handles this one would handle the end of its own process. */
export class SimulatedCrash extends Error {
  override readonly name = 'SimulatedCrash';
}

type Access = 'read' | 'write';

interface Call {
  readonly access: Access;
  readonly signal?: AbortSignal | undefined;
}

/** What a step answers and, if it changed something, what. */
interface Step<T> {
  readonly answer: T;
  readonly wrote?: StoreWrite;
}

export interface MemoryStoreOptions {
  readonly clock: Clock;
  readonly onWrite?: StoreObserver;
}

export class MemoryStore implements Store {
  readonly intents = this.#collection('intents');
  readonly machines = this.#collection('machines');
  readonly addresses = this.#collection('addresses');
  readonly drains = this.#collection('drains');
  readonly pools = this.#collection('pools');
  readonly leases: Leases = this.#leases();
  readonly journal: Journal = this.#journal();

  readonly #options: MemoryStoreOptions;
  readonly #state: MemoryState;
  readonly #gate = new StoreGate();
  #failure: { readonly error: Error; readonly access: Access | 'any' } | undefined;
  #writesLeft = Number.POSITIVE_INFINITY;

  constructor(options: MemoryStoreOptions, state = new MemoryState(() => options.clock.now())) {
    this.#options = options;
    this.#state = state;
  }

  /** The same data opened once more: by another process, or by the next one after a crash. */
  reopen(options: Partial<MemoryStoreOptions> = {}): MemoryStore {
    return new MemoryStore({ ...this.#options, ...options }, this.#state);
  }

  /** The next call of that kind changes nothing and rejects with this error. */
  failNext(error: Error, access: Access | 'any' = 'any'): void {
    this.#failure = { error, access };
  }

  /**
   * The n-th write from now still becomes durable, but its caller never learns so: it and everything after
   * it is answered with SimulatedCrash. The data is there for `reopen`. Zero: nothing more gets through.
   */
  crashAfterWrites(n: number): void {
    this.#writesLeft = n;
  }

  revision(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<number> {
    return this.#act({ access: 'read', signal: options.signal }, () => ({
      answer: this.#state.revision,
    }));
  }

  changes(
    since: number | undefined,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<StoreChanges | undefined> {
    return this.#act({ access: 'read', signal: options.signal }, () => ({
      answer: this.#changes(since),
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
      addresses: of('addresses'),
      drains: of('drains'),
      pools: of('pools'),
      removed,
    };
  }

  installationId(candidate: string): Promise<string> {
    return this.#act({ access: 'write' }, () => {
      const known = this.#state.installationId;
      if (known !== undefined) return { answer: known };
      this.#state.installationId = candidate;
      return {
        answer: candidate,
        wrote: { target: 'installation', action: 'create', key: candidate },
      };
    });
  }

  close(): Promise<void> {
    return this.#gate.close(() => undefined);
  }

  #versioned<N extends CollectionName>(target: N, stored: StoredText): Versioned<RecordKinds[N]> {
    const shape: Shape<RecordKinds[N]> = RECORD_SHAPES[target];
    const known = this.#state.decoded[target].get(stored);
    if (known !== undefined) return known;
    const { key, json, revision } = stored;
    const record = Object.freeze({ key, value: decoded(shape, json), revision });
    this.#state.decoded[target].set(stored, record);
    return record;
  }

  #collection<N extends CollectionName>(target: N): Collection<RecordKinds[N]> {
    type T = RecordKinds[N];
    const shape: Shape<T> = RECORD_SHAPES[target];
    const encode = (key: string, value: T) => encodeRecord(shape, value, `${target} ${key}`);
    const versioned = (stored: StoredText): Versioned<T> => this.#versioned(target, stored);
    return {
      get: (key, { signal } = {}) =>
        this.#act({ access: 'read', signal }, () => {
          const stored = this.#state.get(target, key);
          return { answer: stored && versioned(stored) };
        }),
      list: ({ signal } = {}) =>
        this.#act({ access: 'read', signal }, () => ({
          answer: this.#state.list(target).map(versioned),
        })),
      create: (key, value, { fence, signal } = {}) =>
        this.#act({ access: 'write', signal }, () => {
          const json = encode(key, value);
          const stored = this.#state.create({ collection: target, key, fence }, json);
          return { answer: versioned(stored), wrote: { target, action: 'create', key } };
        }),
      replace: ({ key, revision }, value, { fence, signal } = {}) =>
        this.#act({ access: 'write', signal }, () => {
          const json = encode(key, value);
          const stored = this.#state.replace({ collection: target, key, revision, fence }, json);
          return { answer: versioned(stored), wrote: { target, action: 'replace', key } };
        }),
      remove: ({ key, revision }, { fence, signal } = {}) =>
        this.#act({ access: 'write', signal }, () => {
          this.#state.remove({ collection: target, key, revision, fence });
          return { answer: undefined, wrote: { target, action: 'remove', key } };
        }),
    };
  }

  #leases(): Leases {
    const target = 'leases';
    return {
      acquire: (request, { signal } = {}) =>
        this.#act({ access: 'write', signal }, () => ({
          answer: this.#state.acquire(request),
          wrote: { target, action: 'acquire', key: request.name },
        })),
      renew: (lease, durationMs, { signal } = {}) =>
        this.#act({ access: 'write', signal }, () => ({
          answer: this.#state.renew(lease, durationMs),
          wrote: { target, action: 'renew', key: lease.name },
        })),
      release: (lease: Lease) =>
        this.#act({ access: 'write' }, () => ({
          answer: undefined,
          ...(this.#state.release(lease) && {
            wrote: { target, action: 'release', key: lease.name } as const,
          }),
        })),
      read: (name, { signal } = {}) =>
        this.#act({ access: 'read', signal }, () => ({ answer: this.#state.lease(name) })),
    };
  }

  #journal(): Journal {
    const target = 'journal';
    return {
      append: (entry) =>
        this.#act({ access: 'write' }, () => {
          const row = this.#state.append(journalRow(entry));
          return {
            answer: journalRecord(row),
            wrote: { target, action: 'append', key: String(row.sequence) },
          };
        }),
      read: (query = {}) =>
        this.#act({ access: 'read', signal: query.signal }, () => ({
          answer: this.#state.journal(query).map(journalRecord),
        })),
      prune: ({ beforeMs, keep }) =>
        this.#act({ access: 'write' }, () => {
          const answer = this.#state.prune(beforeMs, keep);
          return answer === 0
            ? { answer }
            : { answer, wrote: { target, action: 'prune', key: String(answer) } };
        }),
    };
  }

  #act<T>({ access, signal }: Call, step: () => Step<T>): Promise<T> {
    return this.#gate.enter(signal, async () => {
      // A database answers later, never inside the call; who forgets to wait shall notice here too.
      await Promise.resolve();
      throwIfAborted(signal);
      this.#assertAlive();
      this.#failIfAsked(access);
      const { answer, wrote } = step();
      if (wrote !== undefined) this.#written(wrote);
      return answer;
    });
  }

  #written(write: StoreWrite): void {
    this.#writesLeft -= 1;
    this.#options.onWrite?.(write);
    this.#assertAlive();
  }

  #assertAlive(): void {
    if (this.#writesLeft <= 0) throw new SimulatedCrash('the process is dead');
  }

  #failIfAsked(access: Access): void {
    const failure = this.#failure;
    if (failure === undefined || (failure.access !== 'any' && failure.access !== access)) return;
    this.#failure = undefined;
    throw failure.error;
  }
}

function journalRow(entry: JournalEntry): Omit<JournalRow, 'sequence'> {
  const { pool, machine, node } = entry.subject;
  const json = encodeRecord(JOURNAL_SHAPE, entry, 'a journal entry');
  return { at: entry.at, pool, machine, node, json };
}

function journalRecord({ sequence, json }: JournalRow): JournalRecord {
  return Object.freeze({ ...decoded(JOURNAL_SHAPE, json), sequence });
}

function decoded<T>(shape: Shape<T>, json: string): T {
  const parsed = decodeRecord(shape, json);
  if (!parsed.ok) throw new Bug('BUG', parsed.problem);
  return parsed.value;
}
