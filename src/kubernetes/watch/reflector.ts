// SPDX-License-Identifier: Apache-2.0
import { Backoff } from '../../ports/backoff.ts';
import type { Clock } from '../../ports/clock.ts';
import { asPvescalerError, Cancelled, type PvescalerError } from '../../ports/errors.ts';
import type { Random } from '../../ports/random.ts';
import type { ApiClient } from '../api-client.ts';
import type { ApiObject } from '../objects.ts';
import { listAll, readVersion } from './list-all.ts';
import { PauseDetector } from './pause-detector.ts';
import { type WatchEnd, watchOnce } from './watch-once.ts';

interface ReflectorOptions<T> {
  readonly api: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
  /** Path of the collection. */
  readonly path: string;
  /** Returns what to cache of an object; undefined drops an invalid object, which the function has reported. */
  readonly parse: (object: ApiObject) => T | undefined;
  /** Receives the keys (`namespace/name`) of what changed; none after a list without a difference. */
  readonly onChange: (keys: readonly string[]) => void;
  /** Called when versions have gone back and the cache is what a new list has returned. */
  readonly onRestored?: (() => void) | undefined;
  readonly onError: (error: PvescalerError) => void;
  /** Called when a watch has ended and the next one begins. */
  readonly onRestart?: ((reason: WatchEnd['kind']) => void) | undefined;
  readonly pageSize?: number;
  readonly watchSeconds?: number;
}

/** Small pages keep the peak memory of parsing low and cost the API server almost nothing. */
const PAGE_SIZE = 200;

/**
 * Short, because a quiet collection sends no events and no bookmarks: only the orderly end of a watch proves that the
 * cache is current. Resuming from its resource version costs the API server almost nothing.
 */
const WATCH_SECONDS = 40;

/** After an error the cache may be out of date; a short first watch proves soon that it is current. */
const FIRST_WATCH_SECONDS = 5;

/** A watch that ends sooner without any event counts as an error; otherwise it would be repeated in a tight loop. */
const MIN_WATCH_MS = 1_000;

const BACKOFF = { firstMs: 800, maxMs: 30_000 } as const;

/** An object as cached, with the resource version that it was parsed from. */
interface CachedItem<T> {
  readonly version: string;
  readonly value: T;
}

interface RefreshWaiter {
  readonly generation: number;
  readonly resolve: () => void;
  readonly reject: (error: PvescalerError) => void;
}

/** Caches one collection: lists it, then keeps it current with watches. */
export class Reflector<T> {
  readonly #options: ReflectorOptions<T>;
  readonly #backoff: Backoff;
  readonly #pauseDetector: PauseDetector;
  readonly #stopping = new AbortController();
  #items = new Map<string, CachedItem<T>>();
  #resourceVersion = '';
  #freshAt: number | undefined;
  #lastError: PvescalerError | undefined;
  /** No error has occurred since the cache was last proved current. */
  #isCurrent = false;
  #isAfterPause = false;
  /** Grows with each request for a new list; a list counts for the generation in which it began. */
  #requestedGeneration = 1;
  #listedGeneration = 0;
  /** A response has proved that the versions of the server have gone back. */
  #isRestoreProved = false;
  #refreshWaiters: readonly RefreshWaiter[] = [];
  #cycle = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    const { clock, random } = options;
    this.#backoff = new Backoff({ clock, random, ...BACKOFF });
    this.#pauseDetector = new PauseDetector(clock);
  }

  get(key: string): T | undefined {
    return this.#items.get(key)?.value;
  }

  values(): T[] {
    return Array.from(this.#items.values(), ({ value }) => value);
  }

  /** Wall clock of the last proof that the cache is current; undefined before the first list. */
  get freshAt(): number | undefined {
    return this.#freshAt;
  }

  /** Everything up to this resource version is in the cache; zero before the first list. */
  get version(): number {
    return Number(this.#resourceVersion);
  }

  /** The process was paused, and the cache has not been proved current since. */
  get isAfterPause(): boolean {
    return this.#isAfterPause || this.#pauseDetector.wasPaused;
  }

  get lastError(): PvescalerError | undefined {
    return this.#lastError;
  }

  start(): void {
    void this.#pauseDetector.run(this.#stopping.signal, () => this.#distrust());
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#cycle.abort();
    await this.#running;
    for (const { reject } of this.#refreshWaiters) {
      reject(new Cancelled('CANCELLED', 'the watch was stopped'));
    }
  }

  /** Lists again; resolves when a list that began after this call is complete, rejects if it fails. */
  refresh(): Promise<void> {
    this.#requestedGeneration += 1;
    const generation = this.#requestedGeneration;
    const done = new Promise<void>((resolve, reject) => {
      this.#refreshWaiters = [...this.#refreshWaiters, { generation, resolve, reject }];
    });
    this.#cycle.abort();
    return done;
  }

  /** Lists again because a response has shown that the versions of the server have gone back. */
  relistAfterRestore(): void {
    if (this.#isRestoreProved) return;
    this.#isRestoreProved = true;
    this.#requestedGeneration += 1;
    this.#cycle.abort();
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      this.#cycle = new AbortController();
      try {
        await this.#listAndWatch(this.#cycle.signal);
      } catch (error) {
        // An abort comes from stop, refresh or a detected pause; it is not an error.
        if (!this.#cycle.signal.aborted) await this.#handleError(asPvescalerError(error));
      }
    }
  }

  async #listAndWatch(signal: AbortSignal): Promise<void> {
    const isRestored = await this.#detectRestoredServer();
    if (this.#listedGeneration < this.#requestedGeneration) await this.#list();
    const { clock } = this.#options;
    const versionBefore = this.#resourceVersion;
    const startedAt = clock.monotonic();
    const end = await this.#watch(signal);
    if (end.kind === 'failed') throw end.error;
    if (!signal.aborted) this.#options.onRestart?.(end.kind);
    if (end.kind === 'expired') this.#requestedGeneration += 1;
    else if (end.isOnTime) this.#markFresh();
    else this.#isCurrent = false;
    const hasAdvanced = !isRestored && this.#resourceVersion !== versionBefore;
    const hasWorked = hasAdvanced || clock.monotonic() - startedAt >= MIN_WATCH_MS;
    if (hasWorked) this.#backoff.reset();
    else await this.#backoff.sleep(signal);
  }

  /**
   * After a restore of an older backup the versions of the server are below ours. A watch from our version would then succeed
   * and deliver nothing, which looks like a collection that does not change. A restore ends every watch early or with an
   * error, so one object is read after that.
   */
  async #detectRestoredServer(): Promise<boolean> {
    if (this.#isCurrent || this.#listedGeneration < this.#requestedGeneration) return false;
    const { api, path } = this.#options;
    const version = await readVersion({ api, path, signal: this.#stopping.signal });
    if (Number(version) >= this.version) return false;
    this.#forgetVersions();
    return true;
  }

  /** The next list replaces everything: the same version may be another content now. */
  #forgetVersions(): void {
    this.#resourceVersion = '';
    this.#requestedGeneration += 1;
  }

  async #list(): Promise<void> {
    // Only now, because a watch that ends may still deliver a version.
    if (this.#isRestoreProved) this.#forgetVersions();
    this.#isRestoreProved = false;
    const generation = this.#requestedGeneration;
    const startedAt = this.#options.clock.now();
    let items = new Map<string, CachedItem<T>>();
    // Not the cycle's signal: frequent refreshes would abort every list before it completes.
    const version = await listAll({
      api: this.#options.api,
      path: this.#options.path,
      pageSize: this.#options.pageSize ?? PAGE_SIZE,
      signal: this.#stopping.signal,
      onObject: (object) => {
        const item = this.#parse(object);
        if (item !== undefined) items.set(objectKey(object), item);
      },
      onRestart: () => {
        items = new Map();
      },
    });
    if (Number(version) < this.version) {
      this.#forgetVersions();
      return this.#list();
    }
    const isRestored = this.#listedGeneration > 0 && this.#resourceVersion === '';
    const changed = differences(this.#items, items);
    this.#items = items;
    this.#resourceVersion = version;
    this.#freshAt = startedAt;
    this.#listedGeneration = generation;
    this.#clearError();
    if (isRestored) this.#options.onRestored?.();
    this.#options.onChange(changed);
    this.#resolveWaiters(generation);
  }

  #watch(signal: AbortSignal): Promise<WatchEnd> {
    const { api, clock, path } = this.#options;
    const usualSeconds = this.#options.watchSeconds ?? WATCH_SECONDS;
    const seconds = this.#isCurrent ? usualSeconds : Math.min(usualSeconds, FIRST_WATCH_SECONDS);
    return watchOnce({
      api,
      clock,
      path,
      resourceVersion: this.#resourceVersion,
      seconds,
      signal,
      onUpsert: (object) => this.#upsert(object),
      onDelete: (object) => {
        const key = objectKey(object);
        if (this.#items.delete(key)) this.#options.onChange([key]);
      },
      onVersion: (version) => {
        this.#resourceVersion = version;
        this.#markFresh();
      },
    });
  }

  #upsert(object: ApiObject): void {
    const key = objectKey(object);
    const item = this.#parse(object);
    if (item === undefined) this.#items.delete(key);
    else this.#items.set(key, item);
    this.#options.onChange([key]);
  }

  /** An unchanged object stays the same object, so that a new list costs its readers nothing. */
  #parse(object: ApiObject): CachedItem<T> | undefined {
    const version = object.metadata.resourceVersion ?? '';
    const known = this.#items.get(objectKey(object));
    const isComparable = version !== '' && this.#resourceVersion !== '';
    if (known !== undefined && isComparable && known.version === version) return known;
    const value = this.#options.parse(object);
    return value === undefined ? undefined : { version, value };
  }

  /** Every change up to now has been received. */
  #markFresh(): void {
    // After a pause, an event from the socket buffer proves nothing about the present.
    if (this.#pauseDetector.wasPaused) this.#distrust();
    if (this.#cycle.signal.aborted) return;
    this.#freshAt = this.#options.clock.now();
    this.#clearError();
  }

  /** Ends the watch; the next one must prove again that the cache is current. */
  #distrust(): void {
    this.#isCurrent = false;
    this.#isAfterPause = true;
    this.#cycle.abort();
  }

  #clearError(): void {
    this.#lastError = undefined;
    this.#isCurrent = true;
    this.#isAfterPause = false;
  }

  async #handleError(failure: PvescalerError): Promise<void> {
    // An unreadable event may have been a change: a new list is needed.
    if (failure.class === 'Bug') this.#requestedGeneration += 1;
    this.#lastError = failure;
    this.#isCurrent = false;
    this.#options.onError(failure);
    this.#options.onRestart?.('failed');
    for (const { reject } of this.#refreshWaiters) reject(failure);
    this.#refreshWaiters = [];
    await this.#backoff.sleep(this.#cycle.signal).catch(() => undefined);
  }

  #resolveWaiters(generation: number): void {
    const done = this.#refreshWaiters.filter((waiter) => waiter.generation <= generation);
    this.#refreshWaiters = this.#refreshWaiters.filter((waiter) => waiter.generation > generation);
    for (const { resolve } of done) resolve();
  }
}

function differences<T>(
  before: ReadonlyMap<string, CachedItem<T>>,
  after: ReadonlyMap<string, CachedItem<T>>,
): readonly string[] {
  const changed = [...after].filter(([key, item]) => before.get(key) !== item);
  const removed = [...before.keys()].filter((key) => !after.has(key));
  return [...changed.map(([key]) => key), ...removed];
}

function objectKey({ metadata }: ApiObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name ?? ''}`;
}
