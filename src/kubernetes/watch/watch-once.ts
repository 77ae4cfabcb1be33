// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';
import { Bug, type PvescalerError, TimedOut } from '../../ports/errors.ts';
import type { Api } from '../api.ts';
import type { ApiObject } from '../objects.ts';
import { isExpired, readStatus, textOf, translateStatus } from '../status.ts';
import { linesOf } from './lines.ts';

export interface WatchOrder {
  readonly api: Api;
  readonly clock: Clock;
  readonly path: string;
  readonly resourceVersion: string;
  /** The server ends the watch after this. */
  readonly seconds: number;
  readonly signal: AbortSignal;
  readonly on: {
    readonly put: (object: ApiObject) => void;
    readonly remove: (object: ApiObject) => void;
    /** The view is complete up to this version. */
    readonly reached: (resourceVersion: string) => void;
  };
}

/** Servers count from when they received the request, in whole seconds. */
const EARLY_MS = 1_000;

/** Beyond the server's own end of the watch: a connection that is this late is dead and does not know it. */
const GRACE_MS = 10_000;

export type WatchEnd =
  /**
   * Go on from where it stopped. As announced: neither sooner nor much later than the server was asked to, so it was
   * the server that ended it, after all it had to say.
   */
  | { readonly kind: 'ended'; readonly isAsAnnounced: boolean }
  /** The server no longer remembers so far back: everything is to be read anew. */
  | { readonly kind: 'expired' }
  | { readonly kind: 'failed'; readonly error: PvescalerError };

/** One watch from its beginning to its end, whichever comes: no retry. Rejects when the transport does. */
export async function watchOnce(order: WatchOrder): Promise<WatchEnd> {
  const quiet = new Quiet(order.clock, order.seconds * 1_000 + GRACE_MS);
  const signal = AbortSignal.any([order.signal, quiet.signal]);
  const startedAt = order.clock.monotonic();
  try {
    const answer = await order.api.open({ ...requestOf(order), signal });
    if (!answer.ok) {
      if (isExpired(answer.status)) return { kind: 'expired' };
      return { kind: 'failed', error: translateStatus(answer.status, `watch ${order.path}`) };
    }
    const end = await follow(quiet.listening(answer.body), order);
    const lateMs = order.clock.monotonic() - startedAt - order.seconds * 1_000;
    return end ?? { kind: 'ended', isAsAnnounced: lateMs >= -EARLY_MS && lateMs <= GRACE_MS };
  } catch (error) {
    if (!quiet.signal.aborted || order.signal.aborted) throw error;
    const message = `watch ${order.path}: the connection is silent beyond its end`;
    return { kind: 'failed', error: new TimedOut('REQUEST_TIMED_OUT', message, { cause: error }) };
  } finally {
    quiet.end();
  }
}

function requestOf({ path, resourceVersion, seconds }: WatchOrder) {
  return {
    path,
    query: {
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion,
      timeoutSeconds: String(seconds),
    },
    doing: `watch ${path}`,
  };
}

/** Undefined: the stream came to its end. */
async function follow(
  body: AsyncIterable<Uint8Array>,
  order: WatchOrder,
): Promise<WatchEnd | undefined> {
  for await (const line of linesOf(body)) {
    const end = take(line, order);
    if (end !== undefined) return end;
  }
  return undefined;
}

function take(line: string, { on, path }: WatchOrder): WatchEnd | undefined {
  const event = parseEvent(line);
  if (event === undefined) return failed(`watch ${path}: an event that cannot be read`);
  const { type, object } = event;
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
      on.put(object);
      break;
    case 'DELETED':
      on.remove(object);
      break;
    case 'BOOKMARK':
      break;
    case 'ERROR': {
      const status = readStatus(500, object);
      if (isExpired(status)) return { kind: 'expired' };
      return { kind: 'failed', error: translateStatus(status, `watch ${path}`) };
    }
    default:
      return failed(`watch ${path}: an event of the unknown type '${type}'`);
  }
  const version = object.metadata.resourceVersion ?? '';
  if (version === '') return failed(`watch ${path}: an event without a resource version`);
  on.reached(version);
  return undefined;
}

function failed(message: string): WatchEnd {
  return { kind: 'failed', error: new Bug('UNEXPECTED_ANSWER', message) };
}

function parseEvent(
  line: string,
): { readonly type: string; readonly object: ApiObject } | undefined {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- looked at below
    const event = JSON.parse(line) as { type: unknown; object: ApiObject } | null;
    const metadata: unknown = event?.object?.metadata;
    if (event === null || typeof metadata !== 'object' || metadata === null) return undefined;
    return { type: textOf(event.type), object: event.object };
  } catch {
    return undefined;
  }
}

/** Aborts when nothing was heard for too long. */
class Quiet {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #silent = new AbortController();
  readonly #ended = new AbortController();
  #heardAt: number;

  constructor(clock: Clock, limitMs: number) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#heardAt = clock.monotonic();
    void this.#guard();
  }

  get signal(): AbortSignal {
    return this.#silent.signal;
  }

  async *listening(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const chunk of body) {
      this.#heardAt = this.#clock.monotonic();
      yield chunk;
    }
  }

  end(): void {
    this.#ended.abort();
  }

  async #guard(): Promise<void> {
    const { signal } = this.#ended;
    try {
      for (;;) {
        const leftMs = this.#heardAt + this.#limitMs - this.#clock.monotonic();
        if (leftMs <= 0) return this.#silent.abort();
        await this.#clock.sleep(leftMs, { signal });
      }
    } catch {
      // The watch is over: nobody listens any more.
    }
  }
}
