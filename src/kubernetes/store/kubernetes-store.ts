// SPDX-License-Identifier: Apache-2.0
// The Store whose records are objects of the Kubernetes API (ADR 0029). Reads come from a copy that watches keep current;
// leases and the journal are those of a local store.
import { isLeaseValid, type Lease } from '../../model/lease.ts';
import type { Clock } from '../../ports/clock.ts';
import { isViewFresh } from '../../ports/cluster.ts';
import {
  asPvescalerError,
  Cancelled,
  Conflict,
  LostLeadership,
  type PvescalerError,
  StoreUnusable,
} from '../../ports/errors.ts';
import { InFlightCalls } from '../../ports/in-flight-calls.ts';
import type { Journal } from '../../ports/journal.ts';
import type { Random } from '../../ports/random.ts';
import type { CollectionName } from '../../ports/record-validators.ts';
import type {
  ReadOptions,
  Store,
  StoreChanges,
  StoreIdentity,
  StoreLeases,
} from '../../ports/store.ts';
import type { Transport } from '../../ports/transport.ts';
import type { RequestFence } from '../../ports/write-fence.ts';
import { ApiClient } from '../api-client.ts';
import { DEFAULT_REQUEST_TIMEOUT_MS } from '../cluster.ts';
import { Reflector } from '../watch/reflector.ts';
import { type ObjectKind, RECORD_KINDS } from './kinds.ts';
import { ObjectClient } from './object-client.ts';
import { ObjectCopy, readServerObject, type ServerObject } from './object-copy.ts';
import { ObjectWriter } from './object-writer.ts';
import { RecordCollection } from './record-collection.ts';
import { RecordCopy } from './record-copy.ts';
import { storeIdentity } from './stored-identity.ts';

/** A deferred write that could not be sent is sent again after this time. */
const FLUSH_RETRY_MS = 30_000;

/** Without an error, a watch that is current may be silent for longer. */
const MAX_FAILING_MS = 20_000;

/**
 * How long a request that another process has deleted stays visible. The machines that it names were written before, but
 * watches of different kinds are not ordered: without the request, a pool would seem smaller until they arrive.
 */
const HELD_REQUEST_MS = 5_000;

export interface KubernetesStoreOptions {
  /** Adds the credentials itself; closed with this store. */
  readonly transport: Transport;
  /** Base URL of the API server. */
  readonly server: string;
  /** Namespace of the objects; it must exist. */
  readonly namespace: string;
  /** Has the leases and the journal; closed with this store. */
  readonly local: Store;
  readonly clock: Clock;
  readonly random: Random;
  /** Asked before each write that has a lease: a process that is no longer the driver sends none. */
  readonly fence?: RequestFence | undefined;
  /** Receives errors of watches and of deferred writes, which no call can reject with, and reports of invalid objects. */
  readonly onBackgroundError?: ((error: PvescalerError) => void) | undefined;
  readonly requestTimeoutMs?: number;
  readonly pageSize?: number;
  readonly watchSeconds?: number;
}

interface WatchedKind {
  readonly kind: ObjectKind;
  readonly reflector: Reflector<ServerObject>;
  readonly copy: ObjectCopy;
  readonly writer: ObjectWriter;
}

export class KubernetesStore implements Store {
  readonly intents: RecordCollection<'intents'>;
  readonly machines: RecordCollection<'machines'>;
  readonly drains: RecordCollection<'drains'>;
  readonly pools: RecordCollection<'pools'>;
  readonly leases: StoreLeases;
  readonly journal: Journal;

  readonly #options: KubernetesStoreOptions;
  readonly #api: ApiClient;
  readonly #records = new RecordCopy();
  readonly #calls = new InFlightCalls();
  readonly #kinds: readonly WatchedKind[];
  readonly #closing = new AbortController();
  #closed: Promise<void> | undefined;
  /** When the next deferred writes are sent, on the monotonic clock. */
  #flushAt = Infinity;
  /** Of the wait until then: an earlier one ends without an effect. */
  #flushTurn = 0;

  constructor(options: KubernetesStoreOptions) {
    this.#options = options;
    const { transport, server, clock } = options;
    const requestTimeoutMs = options.requestTimeoutMs ?? DEFAULT_REQUEST_TIMEOUT_MS;
    this.#api = new ApiClient({ transport, server, clock, requestTimeoutMs });
    const { leases, journal } = options.local;
    this.journal = journal;
    this.leases = {
      acquire: (request, read) => leases.acquire(request, read),
      renew: (lease, durationMs, read) => leases.renew(lease, durationMs, read),
      read: (name, read) => leases.read(name, read),
      release: async (lease) => {
        if (!this.#closing.signal.aborted) await this.#flush(lease);
        await leases.release(lease);
        // What could not be sent: otherwise this process would go on to see it.
        await Promise.all(this.#kinds.map(({ writer }) => writer.revertLost()));
      },
    };
    this.#kinds = RECORD_KINDS.map((kind) => this.#watchKind(kind));
    this.intents = this.#collection('intents');
    this.machines = this.#collection('machines');
    this.drains = this.#collection('drains');
    this.pools = this.#collection('pools');
  }

  /** Reads all records, then keeps them current. */
  async open(): Promise<void> {
    const read = this.synchronize();
    for (const { reflector } of this.#kinds) reflector.start();
    await read;
  }

  synchronize({ signal }: ReadOptions = {}): Promise<void> {
    return this.#calls.run(signal, async () => {
      const lists = this.#kinds.map(({ kind, reflector }) =>
        reflector.refresh().catch((error: unknown) => {
          throw explainMissing(kind, asPvescalerError(error));
        }),
      );
      await unlessAborted(Promise.all(lists), signal);
      for (const { copy, writer } of this.#kinds) {
        copy.forgetRemembered();
        await writer.revertLost();
      }
    });
  }

  flush(lease: Lease): Promise<void> {
    return this.#calls.run(undefined, () => this.#flush(lease));
  }

  staleness(): string | undefined {
    for (const { kind, reflector } of this.#kinds) {
      const problem = stalenessOf(reflector, this.#options.clock.now());
      if (problem !== undefined) return `${kind.plural} ${problem}`;
    }
    return undefined;
  }

  revision({ signal }: ReadOptions = {}): Promise<number> {
    return this.#calls.run(signal, async () => this.#records.revision);
  }

  changes(
    since: number | undefined,
    { signal }: ReadOptions = {},
  ): Promise<StoreChanges | undefined> {
    return this.#calls.run(signal, async () => this.#records.changes(since));
  }

  identity(candidate: StoreIdentity = {}): Promise<StoreIdentity> {
    const { namespace } = this.#options;
    return this.#calls.run(undefined, () => storeIdentity(this.#api, namespace, candidate));
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    await this.#calls.close(() => undefined);
    await this.#flush();
    this.#closing.abort();
    await Promise.all(this.#kinds.map(({ reflector }) => reflector.stop()));
    await this.#options.transport.close();
    await this.#options.local.close();
  }

  #watchKind(kind: ObjectKind): WatchedKind {
    const { namespace, clock, random, fence, pageSize, watchSeconds } = this.#options;
    const api = this.#api;
    const client = new ObjectClient({ api, namespace, kind, fence });
    const records = this.#records;
    const onError = (error: PvescalerError) => this.#options.onBackgroundError?.(error);
    const copy: ObjectCopy = new ObjectCopy({
      kind,
      namespace,
      records,
      reflector: () => reflector,
      onHeld: kind.isOver && ((name) => this.#releaseLater(copy, name)),
    });
    const reflector: Reflector<ServerObject> = new Reflector<ServerObject>({
      api,
      clock,
      random,
      path: client.path,
      parse: (object) => {
        const read = readServerObject(kind, object);
        if (read.problem !== undefined) onError(invalidObject(kind, read));
        return read;
      },
      onChange: (keys) => copy.reflect(keys.map((key) => key.slice(namespace.length + 1))),
      onRestored: () => copy.forgetOwnWrites(),
      onError,
      ...(pageSize !== undefined && { pageSize }),
      ...(watchSeconds !== undefined && { watchSeconds }),
    });
    const writer = new ObjectWriter({
      kind,
      client,
      copy,
      records,
      assertHeld: (lease) => this.#assertHeld(lease),
      clock,
      onDeferred: (dueAt) => this.#scheduleFlush(dueAt),
      onError,
    });
    return { kind, reflector, copy, writer };
  }

  #collection<N extends CollectionName>(collection: N): RecordCollection<N> {
    const holder = this.#kinds.find(({ kind }) =>
      kind.parts.some((part) => part.collection === collection),
    );
    if (holder === undefined) throw new TypeError(`no kind holds ${collection}`);
    const { writer } = holder;
    return new RecordCollection({ collection, records: this.#records, writer, calls: this.#calls });
  }

  async #assertHeld(lease: Lease): Promise<void> {
    const newest = await this.#options.local.leases.read(lease.name);
    const isCurrent =
      newest?.token === lease.token &&
      newest.holder === lease.holder &&
      isLeaseValid(newest, this.#options.clock.now());
    if (isCurrent) return;
    const message = `${lease.holder} no longer holds lease ${lease.name}`;
    throw new LostLeadership('LEASE_LOST', message);
  }

  #releaseLater(copy: ObjectCopy, name: string): void {
    const { signal } = this.#closing;
    this.#options.clock.sleep(HELD_REQUEST_MS, { signal }).then(
      () => copy.release(name),
      () => undefined,
    );
  }

  async #flush(fence?: Lease): Promise<void> {
    await Promise.all(this.#kinds.map(({ writer }) => writer.flush(fence)));
  }

  #scheduleFlush(dueAt: number): void {
    if (dueAt >= this.#flushAt) return;
    this.#flushAt = dueAt;
    this.#flushTurn += 1;
    void this.#flushLater(dueAt, this.#flushTurn).catch(() => undefined);
  }

  async #flushLater(dueAt: number, turn: number): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#closing;
    await clock.sleep(Math.max(0, dueAt - clock.monotonic()), { signal });
    // Another write that is due earlier was deferred meanwhile.
    if (turn !== this.#flushTurn) return;
    const now = clock.monotonic();
    await Promise.all(this.#kinds.map(({ writer }) => writer.flushDue(now)));
    this.#flushAt = Infinity;
    const times = this.#kinds.flatMap(({ writer }) => writer.dueTimes);
    this.#scheduleFlush(Math.min(...times.map((at) => (at > now ? at : now + FLUSH_RETRY_MS))));
  }
}

function invalidObject(kind: ObjectKind, { key, problem }: ServerObject): Conflict {
  return new Conflict(
    'RECORD_INVALID',
    `${kind.kind} of ${key} cannot be read and is ignored: ${problem}`,
  );
}

/** A list of a resource that the API server does not know fails with 404. */
function explainMissing({ kind }: ObjectKind, error: PvescalerError): PvescalerError {
  if (error.code !== 'KUBERNETES_OBJECT_NOT_FOUND') return error;
  return new StoreUnusable(
    'STORE_NOT_INSTALLED',
    `the API server does not know the kind ${kind}: install the CustomResourceDefinitions with kubectl apply -f deploy/crds`,
    { cause: error },
  );
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(new Cancelled('CANCELLED', 'the call was cancelled'));
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

type Freshness = Pick<Reflector<unknown>, 'freshAt' | 'lastError' | 'isAfterPause'>;

function stalenessOf({ freshAt, lastError, isAfterPause }: Freshness, now: number) {
  if (freshAt === undefined) return `could not be read yet${reasonOf(lastError)}`;
  if (isAfterPause) return 'were not read since this process was paused';
  const isFailing = lastError !== undefined && now - freshAt > MAX_FAILING_MS;
  if (isViewFresh({ freshAt }, now) && !isFailing) return undefined;
  return `could not be read since ${new Date(freshAt).toISOString()}${reasonOf(lastError)}`;
}

function reasonOf(error: PvescalerError | undefined): string {
  return error === undefined ? '' : `: ${error.message}`;
}
