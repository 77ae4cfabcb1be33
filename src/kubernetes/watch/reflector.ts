// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';
import { asPvescalerError, Cancelled, type PvescalerError } from '../../ports/errors.ts';
import type { Random } from '../../ports/random.ts';
import type { Api } from '../api.ts';
import type { ApiObject } from '../objects.ts';
import { Backoff } from './backoff.ts';
import { Frozen } from './frozen.ts';
import { listAll } from './list-all.ts';
import { type WatchEnd, watchOnce } from './watch-once.ts';

export interface ReflectorOptions<T> {
  readonly api: Api;
  readonly clock: Clock;
  readonly random: Random;
  /** Path of the collection. */
  readonly path: string;
  /** What is kept of an object; undefined: nothing, because it makes no sense (and was reported). */
  readonly project: (object: ApiObject) => T | undefined;
  readonly onChange: () => void;
  readonly onTrouble: (error: PvescalerError) => void;
  /** A watch is over and another one begins. */
  readonly onRestart?: ((reason: WatchEnd['kind']) => void) | undefined;
  readonly pageSize?: number;
  readonly watchSeconds?: number;
}

/** What is parsed at once is garbage at once: small pages keep the peak low, and cost the server next to nothing. */
const PAGE_SIZE = 200;

/**
 * Short, because a quiet collection has no events, and bookmarks only when something happened: its proof is that the
 * server ended the watch as announced, having said all it had to say. Going on from there costs it next to nothing.
 */
const WATCH_SECONDS = 40;

/** After trouble nobody knows whether the view is current; an early end proves it soon. */
const FIRST_WATCH_SECONDS = 5;

/** A watch that ends sooner without having brought anything is taken for trouble, or it would be asked for in a loop. */
const TOO_SHORT_MS = 1_000;

interface Waiting {
  readonly generation: number;
  readonly resolve: () => void;
  readonly reject: (error: PvescalerError) => void;
}

/** A copy of one collection, kept up to date by a watch. */
export class Reflector<T> {
  readonly #options: ReflectorOptions<T>;
  readonly #backoff: Backoff;
  readonly #frozen: Frozen;
  readonly #stopping = new AbortController();
  #items = new Map<string, T>();
  #version = '';
  #freshAt: number | undefined;
  #lastTrouble: PvescalerError | undefined;
  /** Nothing went wrong since the last proof. */
  #isProven = false;
  /** Grows with each order to read anew; a list counts for the generation it began in. */
  #wanted = 1;
  #listed = 0;
  #waiting: readonly Waiting[] = [];
  #turn = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#backoff = new Backoff(options.clock, options.random);
    this.#frozen = new Frozen(options.clock);
  }

  get items(): ReadonlyMap<string, T> {
    return this.#items;
  }

  /** Wall clock of the last proof; undefined before the first list. */
  get freshAt(): number | undefined {
    return this.#freshAt;
  }

  get lastTrouble(): PvescalerError | undefined {
    return this.#lastTrouble;
  }

  start(): void {
    void this.#frozen.watch(this.#stopping.signal, () => this.#thaw());
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#turn.abort();
    await this.#running;
    for (const { reject } of this.#waiting) reject(new Cancelled('CANCELLED', 'the watch ended'));
  }

  /** Reads everything anew; resolves when a list that began after this call is complete, rejects if it fails. */
  refresh(): Promise<void> {
    this.#wanted += 1;
    const generation = this.#wanted;
    const done = new Promise<void>((resolve, reject) => {
      this.#waiting = [...this.#waiting, { generation, resolve, reject }];
    });
    this.#turn.abort();
    return done;
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      this.#turn = new AbortController();
      try {
        await this.#takeTurn(this.#turn.signal);
      } catch (error) {
        // Called off by stop or by refresh: not trouble.
        if (!this.#turn.signal.aborted) await this.#troubled(asPvescalerError(error));
      }
    }
  }

  async #takeTurn(signal: AbortSignal): Promise<void> {
    if (this.#listed < this.#wanted) await this.#list();
    const { clock } = this.#options;
    const versionBefore = this.#version;
    const startedAt = clock.monotonic();
    const end = await this.#watch(signal);
    if (end.kind === 'failed') throw end.error;
    if (!signal.aborted) this.#options.onRestart?.(end.kind);
    if (end.kind === 'expired') this.#wanted += 1;
    if (end.kind === 'ended' && end.isAsAnnounced) this.#prove();
    const hasWorked =
      this.#version !== versionBefore || clock.monotonic() - startedAt >= TOO_SHORT_MS;
    if (hasWorked) this.#backoff.succeeded();
    else await this.#backoff.pause(signal);
  }

  async #list(): Promise<void> {
    const generation = this.#wanted;
    const startedAt = this.#options.clock.now();
    let items = new Map<string, T>();
    // Not the turn's signal: a refresh that comes meanwhile is served by the next list, not by starving this one.
    const version = await listAll({
      api: this.#options.api,
      path: this.#options.path,
      pageSize: this.#options.pageSize ?? PAGE_SIZE,
      signal: this.#stopping.signal,
      take: (object) => {
        const value = this.#options.project(object);
        if (value !== undefined) items.set(keyOf(object), value);
      },
      restart: () => {
        items = new Map();
      },
    });
    this.#items = items;
    this.#version = version;
    this.#freshAt = startedAt;
    this.#listed = generation;
    this.#works();
    this.#options.onChange();
    this.#settle(generation);
  }

  #watch(signal: AbortSignal): Promise<WatchEnd> {
    const { api, clock, path } = this.#options;
    const usual = this.#options.watchSeconds ?? WATCH_SECONDS;
    const seconds = this.#isProven ? usual : Math.min(usual, FIRST_WATCH_SECONDS);
    const on = {
      put: (object: ApiObject) => this.#put(object),
      remove: (object: ApiObject) => {
        if (this.#items.delete(keyOf(object))) this.#options.onChange();
      },
      reached: (version: string) => this.#reached(version),
    };
    const resourceVersion = this.#version;
    return watchOnce({ api, clock, path, resourceVersion, seconds, signal, on });
  }

  #put(object: ApiObject): void {
    const value = this.#options.project(object);
    if (value === undefined) this.#items.delete(keyOf(object));
    else this.#items.set(keyOf(object), value);
    this.#options.onChange();
  }

  #reached(version: string): void {
    this.#version = version;
    this.#prove();
  }

  /** Everything up to now was heard. */
  #prove(): void {
    // What lay in the socket while the whole process was stopped says nothing about now.
    if (this.#frozen.sinceLong) this.#thaw();
    if (this.#turn.signal.aborted) return;
    this.#freshAt = this.#options.clock.now();
    this.#works();
  }

  #thaw(): void {
    this.#isProven = false;
    this.#turn.abort();
  }

  #works(): void {
    this.#lastTrouble = undefined;
    this.#isProven = true;
  }

  async #troubled(trouble: PvescalerError): Promise<void> {
    // What was lost cannot be known from an answer that cannot be read.
    if (trouble.class === 'Bug') this.#wanted += 1;
    this.#lastTrouble = trouble;
    this.#isProven = false;
    this.#options.onTrouble(trouble);
    this.#options.onRestart?.('failed');
    for (const { reject } of this.#waiting) reject(trouble);
    this.#waiting = [];
    await this.#backoff.pause(this.#turn.signal).catch(() => undefined);
  }

  #settle(generation: number): void {
    const done = this.#waiting.filter((one) => one.generation <= generation);
    this.#waiting = this.#waiting.filter((one) => one.generation > generation);
    for (const { resolve } of done) resolve();
  }
}

function keyOf({ metadata }: ApiObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name ?? ''}`;
}
