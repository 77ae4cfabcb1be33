// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../../ports/clock.ts';
import { ApiError } from '../storage/api-error.ts';
import type { ObjectChange, ObjectStore } from '../storage/object-store.ts';
import type { SimObject } from '../storage/objects.ts';
import { DEFINITIONS, type Resource } from '../storage/resources.ts';
import { type ObjectFilter, parseSelectors } from '../storage/selectors.ts';
import type { Presentation } from './presentation.ts';

export interface WatchOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  /** As stored. */
  readonly resource: Resource;
  /** As requested. */
  readonly requested: Resource;
  readonly namespace: string;
  /** Only this object; empty for all. */
  readonly name: string;
  readonly presentation: Presentation;
  readonly query: URLSearchParams;
  /** Injected fault: the watch sends this line and ends. */
  readonly onlyLine?: string;
}

const DEFAULT_TIMEOUT_SECONDS = 1_800;
const BOOKMARK_INTERVAL_MS = 60_000;
/** A real API server sends its last bookmark this long before the watch times out. */
const LAST_BOOKMARK_BEFORE_END_MS = 2_000;
const ENCODER = new TextEncoder();

/** The open watches. Tests break, end or stall them. */
export class Watches {
  readonly #open = new Set<Watch>();

  get openCount(): number {
    return this.#open.size;
  }

  /** Breaks the connection of every open watch. */
  disconnect(): void {
    for (const watch of this.#open) watch.disconnect();
  }

  /** Sends this line on every open watch and ends the watch. */
  sendAndClose(line: string): void {
    for (const watch of this.#open) watch.sendAndClose(line);
  }

  /** Keeps every connection open and sends nothing more. */
  stall(): void {
    for (const watch of this.#open) watch.stall();
  }

  start(options: WatchOptions): ReadableStream<Uint8Array> {
    const watch = new Watch(options, (ended) => this.#open.delete(ended));
    // A watch with an expired version or an injected line has already ended.
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
  #isStalled = false;
  #fromVersion = 0;
  readonly #filter: ObjectFilter;

  constructor(options: WatchOptions, onEnd: (watch: Watch) => void) {
    this.#options = options;
    this.#filter = selectWatched(options);
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

  disconnect(): void {
    const controller = this.#controller;
    this.#close();
    controller?.error(new Error('the connection was cut'));
  }

  sendAndClose(line: string): void {
    this.#write(line);
    this.#finish();
  }

  stall(): void {
    this.#isStalled = true;
  }

  #start(): void {
    const { query, store, onlyLine } = this.#options;
    if (onlyLine !== undefined) return this.sendAndClose(onlyLine);
    try {
      const given = query.get('resourceVersion') ?? '';
      this.#fromVersion = Number(given) || store.version;
      // Without a version the watch begins with the current state.
      const isInitialSent = query.get('sendInitialEvents') === 'true' || !Number(given);
      if (isInitialSent) this.#sendCurrentState(query.get('sendInitialEvents') === 'true');
      const from = isInitialSent ? store.version : this.#fromVersion;
      this.#unwatch = store.watch(from, (change) => {
        if (isEndOfDefinition(change, this.#options.resource)) this.#finish();
        else this.#sendChange(change);
      });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return this.sendAndClose(JSON.stringify({ type: 'ERROR', object: error.toStatus() }));
    }
    void this.#sendBookmarksUntilTimeout().catch(() => undefined);
  }

  async #sendBookmarksUntilTimeout(): Promise<void> {
    const { clock, query } = this.#options;
    const { signal } = this.#ended;
    let leftMs = Number(query.get('timeoutSeconds') ?? DEFAULT_TIMEOUT_SECONDS) * 1_000;
    while (leftMs > 0) {
      const beforeEndMs = leftMs - LAST_BOOKMARK_BEFORE_END_MS;
      const ms = beforeEndMs > 0 ? Math.min(BOOKMARK_INTERVAL_MS, beforeEndMs) : leftMs;
      await clock.sleep(ms, { signal });
      leftMs -= ms;
      if (leftMs > 0) this.#sendBookmark();
    }
    if (!this.#isStalled) this.#finish();
  }

  #sendCurrentState(hasEndMark: boolean): void {
    const { resource, requested, namespace, store, presentation } = this.#options;
    for (const object of store.list(resource, namespace)) {
      if (this.#filter(object)) this.#send('ADDED', presentation.one(object));
    }
    if (!hasEndMark) return;
    const { kind, apiVersion } = requested;
    const annotations = { 'k8s.io/initial-events-end': 'true' };
    const metadata = { resourceVersion: String(store.version), annotations };
    this.#send('BOOKMARK', { kind, apiVersion, metadata });
  }

  /** An object that begins or ceases to be selected appears as added or deleted. */
  #sendChange({ type, object, previous, resource }: ObjectChange): void {
    const { resource: watched, presentation } = this.#options;
    if (resource !== watched) return;
    const isSelected = type !== 'DELETED' && this.#filter(object);
    const wasSelected = previous !== undefined && this.#filter(previous);
    if (!isSelected && !wasSelected) return;
    const shown = isSelected && !wasSelected ? 'ADDED' : isSelected ? 'MODIFIED' : 'DELETED';
    this.#send(shown, presentation.one(object));
  }

  #send(type: string, object: object): void {
    this.#write(JSON.stringify({ type, object }));
  }

  #sendBookmark(): void {
    const { resource, requested, query, store } = this.#options;
    if (query.get('allowWatchBookmarks') !== 'true') return;
    const { kind, apiVersion } = requested;
    const version = store.lastChangeVersion(resource);
    // Like a real API server, sends no bookmark when the client already has the latest version of this resource.
    if (version <= this.#fromVersion) return;
    const metadata = { resourceVersion: String(version), creationTimestamp: null };
    this.#write(JSON.stringify({ type: 'BOOKMARK', object: { kind, apiVersion, metadata } }));
  }

  #write(line: string): void {
    if (!this.#isStalled) this.#controller?.enqueue(ENCODER.encode(`${line}\n`));
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

/** A watch ends with the definition of its resource. */
function isEndOfDefinition(
  { type, resource, object }: ObjectChange,
  { custom }: Resource,
): boolean {
  return (
    type === 'DELETED' && resource === DEFINITIONS && object.metadata.name === custom?.definition
  );
}

function selectWatched(options: WatchOptions): ObjectFilter {
  const { requested, query, namespace, name, presentation } = options;
  const filter = parseSelectors(requested, query);
  const isAddressed = ({ metadata }: SimObject) =>
    (namespace === '' || metadata.namespace === namespace) &&
    (name === '' || metadata.name === name);
  return (object) => isAddressed(object) && filter(presentation.convert(object));
}
