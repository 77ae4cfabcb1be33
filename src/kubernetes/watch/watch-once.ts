// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';
import { Bug, type PvescalerError, TimedOut } from '../../ports/errors.ts';
import type { ApiClient } from '../api-client.ts';
import type { ApiObject } from '../objects.ts';
import { asString, isExpired, readStatus, translateStatus } from '../status.ts';

interface WatchRequest {
  readonly api: ApiClient;
  readonly clock: Clock;
  readonly path: string;
  readonly resourceVersion: string;
  /** The server ends the watch after this time. */
  readonly seconds: number;
  readonly signal: AbortSignal;
  readonly onUpsert: (object: ApiObject) => void;
  readonly onDelete: (object: ApiObject) => void;
  /** Called after each event: the cache is complete up to this version. */
  readonly onVersion: (resourceVersion: string) => void;
}

/** Servers count whole seconds from when they received the request, so a watch may end this much early. */
const EARLY_TOLERANCE_MS = 1_000;

/** A watch that is this late has a dead connection that TCP has not noticed. */
const LATE_TOLERANCE_MS = 10_000;

export type WatchEnd =
  /**
   * The next watch resumes from the last version. `isOnTime`: the watch lasted as long as requested, so the server
   * ended it and had sent every event.
   */
  | { readonly kind: 'ended'; readonly isOnTime: boolean }
  /** The resource version is too old for the server: list again. */
  | { readonly kind: 'expired' }
  | { readonly kind: 'failed'; readonly error: PvescalerError };

/** Runs one watch to its end, without retry. Rejects when the transport does. */
export async function watchOnce(request: WatchRequest): Promise<WatchEnd> {
  const { api, clock, path, seconds } = request;
  const idle = new IdleTimeout(clock, seconds * 1_000 + LATE_TOLERANCE_MS);
  const signal = AbortSignal.any([request.signal, idle.signal]);
  const startedAt = clock.monotonic();
  try {
    const opened = await api.openStream({ ...apiRequest(request), signal });
    if (!opened.ok) {
      if (isExpired(opened.status)) return { kind: 'expired' };
      return { kind: 'failed', error: translateStatus(opened.status, `watch ${path}`) };
    }
    const end = await handleEvents(idle.observe(readLines(opened.body)), request);
    const lateMs = clock.monotonic() - startedAt - seconds * 1_000;
    const isOnTime = lateMs >= -EARLY_TOLERANCE_MS && lateMs <= LATE_TOLERANCE_MS;
    return end ?? { kind: 'ended', isOnTime };
  } catch (error) {
    if (!idle.signal.aborted || request.signal.aborted) throw error;
    const message = `watch ${path}: the connection was silent beyond the end of the watch`;
    return { kind: 'failed', error: new TimedOut('REQUEST_TIMED_OUT', message, { cause: error }) };
  } finally {
    idle.stop();
  }
}

function apiRequest({ path, resourceVersion, seconds }: WatchRequest) {
  return {
    path,
    query: {
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion,
      timeoutSeconds: String(seconds),
    },
    operation: `watch ${path}`,
  };
}

/** Undefined: the stream ended without an error event. */
async function handleEvents(
  lines: AsyncIterable<string>,
  request: WatchRequest,
): Promise<WatchEnd | undefined> {
  for await (const line of lines) {
    const end = handleEvent(line, request);
    if (end !== undefined) return end;
  }
  return undefined;
}

function handleEvent(line: string, request: WatchRequest): WatchEnd | undefined {
  const { path, onUpsert, onDelete, onVersion } = request;
  const event = parseEvent(line);
  if (event === undefined) return unexpected(`watch ${path}: an event could not be parsed`);
  const { type, object } = event;
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
      onUpsert(object);
      break;
    case 'DELETED':
      onDelete(object);
      break;
    case 'BOOKMARK':
      break;
    case 'ERROR': {
      const status = readStatus(500, object);
      if (isExpired(status)) return { kind: 'expired' };
      return { kind: 'failed', error: translateStatus(status, `watch ${path}`) };
    }
    default:
      return unexpected(`watch ${path}: an event has the unknown type '${type}'`);
  }
  const version = object.metadata.resourceVersion ?? '';
  if (version === '') return unexpected(`watch ${path}: an event has no resource version`);
  onVersion(version);
  return undefined;
}

function unexpected(message: string): WatchEnd {
  return { kind: 'failed', error: new Bug('UNEXPECTED_ANSWER', message) };
}

function parseEvent(
  line: string,
): { readonly type: string; readonly object: ApiObject } | undefined {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- checked below
    const event = JSON.parse(line) as { type: unknown; object: ApiObject } | null;
    const metadata: unknown = event?.object?.metadata;
    if (event === null || typeof metadata !== 'object' || metadata === null) return undefined;
    return { type: asString(event.type), object: event.object };
  } catch {
    return undefined;
  }
}

/** Aborts its signal when a stream delivers no event for too long; parts of an event do not count. */
class IdleTimeout {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #expired = new AbortController();
  readonly #stopped = new AbortController();
  #lastEventAt: number;

  constructor(clock: Clock, limitMs: number) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#lastEventAt = clock.monotonic();
    void this.#run();
  }

  get signal(): AbortSignal {
    return this.#expired.signal;
  }

  async *observe(lines: AsyncIterable<string>): AsyncIterable<string> {
    for await (const line of lines) {
      this.#lastEventAt = this.#clock.monotonic();
      yield line;
    }
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    try {
      for (;;) {
        const leftMs = this.#lastEventAt + this.#limitMs - this.#clock.monotonic();
        if (leftMs <= 0) return this.#expired.abort();
        await this.#clock.sleep(leftMs, { signal });
      }
    } catch {
      // The watch has ended.
    }
  }
}

const NEWLINE = 10;

/** Yields each line of a stream as soon as it is complete. Text after the last line break is truncated, not a line. */
export async function* readLines(body: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  let parts: Buffer[] = [];
  for await (const chunk of body) {
    let rest = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      const head = rest.subarray(0, end);
      const line = parts.length === 0 ? head : Buffer.concat([...parts, head]);
      parts = [];
      rest = rest.subarray(end + 1);
      if (line.length > 0) yield line.toString('utf8');
    }
    if (rest.length > 0) parts.push(rest);
  }
}
