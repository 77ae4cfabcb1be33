// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../../ports/clock.ts';
import { ApiError } from '../world/api-error.ts';
import type { Resource } from '../world/resources.ts';
import type { Change, Store } from '../world/store.ts';

export interface WatchOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly resource: Resource;
  readonly namespace: string;
  readonly query: URLSearchParams;
  /** Sent first, and then the end: for faults. */
  readonly lastWords?: string;
}

const DEFAULT_SECONDS = 1_800;
const BOOKMARK_MS = 60_000;
/** The real one sends its last bookmark this long before the end. */
const BEFORE_END_MS = 2_000;
const ENCODER = new TextEncoder();

/** Watches that are open, so that they can be cut. */
export class Watches {
  readonly #open = new Set<Watch>();

  get count(): number {
    return this.#open.size;
  }

  /** Breaks every connection, in the middle of whatever it says. */
  cut(): void {
    for (const watch of this.#open) watch.fail();
  }

  /** Says this to everybody and ends. */
  say(line: string): void {
    for (const watch of this.#open) watch.lastWords(line);
  }

  /** The connections stay, and nothing comes any more. */
  silence(): void {
    for (const watch of this.#open) watch.silence();
  }

  start(options: WatchOptions): ReadableStream<Uint8Array> {
    const watch = new Watch(options, (over) => this.#open.delete(over));
    // It may be over already: its first word was its last.
    if (watch.isOpen) this.#open.add(watch);
    return watch.stream;
  }
}

class Watch {
  readonly stream: ReadableStream<Uint8Array>;
  readonly #options: WatchOptions;
  readonly #onEnd: (watch: Watch) => void;
  readonly #ended = new AbortController();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #unwatch: (() => void) | undefined;
  #isSilent = false;
  #from = 0;

  constructor(options: WatchOptions, onEnd: (watch: Watch) => void) {
    this.#options = options;
    this.#onEnd = onEnd;
    this.stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
        this.#start();
      },
      cancel: () => this.#close(),
    });
  }

  get isOpen(): boolean {
    return this.#controller !== undefined;
  }

  fail(): void {
    const controller = this.#controller;
    this.#close();
    controller?.error(new Error('the connection was cut'));
  }

  lastWords(line: string): void {
    this.#write(line);
    this.#finish();
  }

  silence(): void {
    this.#isSilent = true;
  }

  #start(): void {
    const { query, store, lastWords } = this.#options;
    if (lastWords !== undefined) return this.lastWords(lastWords);
    try {
      this.#from = Number(query.get('resourceVersion') ?? 0) || store.version;
      this.#unwatch = store.watch(this.#from, (change) => this.#tell(change));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return this.lastWords(JSON.stringify({ type: 'ERROR', object: error.toStatus() }));
    }
    void this.#live().catch(() => undefined);
  }

  async #live(): Promise<void> {
    const { clock, query } = this.#options;
    const { signal } = this.#ended;
    let leftMs = Number(query.get('timeoutSeconds') ?? DEFAULT_SECONDS) * 1_000;
    while (leftMs > 0) {
      const beforeEndMs = leftMs - BEFORE_END_MS;
      const ms = beforeEndMs > 0 ? Math.min(BOOKMARK_MS, beforeEndMs) : leftMs;
      await clock.sleep(ms, { signal });
      leftMs -= ms;
      if (leftMs > 0) this.#bookmark();
    }
    if (!this.#isSilent) this.#finish();
  }

  #tell({ type, object, resource }: Change): void {
    const { resource: wanted, namespace } = this.#options;
    if (resource !== wanted) return;
    if (namespace !== '' && object.metadata.namespace !== namespace) return;
    this.#write(JSON.stringify({ type, object }));
  }

  #bookmark(): void {
    const { resource, query, store } = this.#options;
    if (query.get('allowWatchBookmarks') !== 'true') return;
    const { kind, apiVersion } = resource;
    const version = store.lastChange(resource);
    // Like the real one, it has none for who has seen everything of that kind already.
    if (version <= this.#from) return;
    const metadata = { resourceVersion: String(version), creationTimestamp: null };
    this.#write(JSON.stringify({ type: 'BOOKMARK', object: { kind, apiVersion, metadata } }));
  }

  #write(line: string): void {
    if (!this.#isSilent) this.#controller?.enqueue(ENCODER.encode(`${line}\n`));
  }

  #finish(): void {
    const controller = this.#controller;
    this.#close();
    controller?.close();
  }

  #close(): void {
    this.#controller = undefined;
    this.#unwatch?.();
    this.#ended.abort();
    this.#onEnd(this);
  }
}
