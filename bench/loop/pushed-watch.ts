// SPDX-License-Identifier: Apache-2.0
// A transport to an API server in this process, whose watch events the benchmark sends. A watch that begins later gets the
// events since its resource version, as from a real server.
import { setImmediate } from 'node:timers/promises';
import type { Transport, TransportRequest, TransportResponse } from '../../src/ports/transport.ts';
import type { ApiObject } from './cluster.ts';

export class PushedWatch implements Transport {
  readonly #lists: ReadonlyMap<string, readonly ApiObject[]>;
  readonly #logs = new Map<string, EventLog>();
  #version = 1;

  /** `lists`: objects by the last part of their path. */
  constructor(lists: ReadonlyMap<string, readonly ApiObject[]>) {
    this.#lists = lists;
  }

  /** The next resource version. */
  nextVersion(): number {
    this.#version += 1;
    return this.#version;
  }

  push(resource: string, type: 'ADDED' | 'MODIFIED' | 'DELETED', object: ApiObject): void {
    const line = `${JSON.stringify({ type, object })}\n`;
    this.#logOf(resource).push({ version: Number(object.metadata.resourceVersion), line });
  }

  request({ url, signal }: TransportRequest): Promise<TransportResponse> {
    const { pathname, searchParams } = new URL(url);
    const resource = pathname.split('/').at(-1) ?? '';
    const body = searchParams.has('watch')
      ? this.#logOf(resource).read(
          Number(searchParams.get('resourceVersion')),
          endOf(searchParams, signal),
        )
      : this.#list(resource, searchParams);
    return Promise.resolve({ status: 200, reason: 'OK', headers: {}, body });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #logOf(resource: string): EventLog {
    const log = this.#logs.get(resource) ?? new EventLog();
    this.#logs.set(resource, log);
    return log;
  }

  async *#list(resource: string, query: URLSearchParams): AsyncIterable<Uint8Array> {
    // Timers run between two pages, as with a server in another process.
    await setImmediate();
    const all = this.#lists.get(resource) ?? [];
    const from = Number(query.get('continue') ?? 0);
    const end = Math.min(all.length, from + Number(query.get('limit') ?? all.length));
    const metadata = { resourceVersion: '1', ...(end < all.length && { continue: String(end) }) };
    yield Buffer.from(JSON.stringify({ metadata, items: all.slice(from, end) }));
  }
}

/** A watch ends after the requested time, or with its client. */
function endOf(query: URLSearchParams, signal: AbortSignal | undefined): AbortSignal {
  const ended = AbortSignal.timeout(Number(query.get('timeoutSeconds')) * 1_000);
  return signal === undefined ? ended : AbortSignal.any([signal, ended]);
}

interface LoggedEvent {
  readonly version: number;
  readonly line: string;
}

class EventLog {
  readonly #events: LoggedEvent[] = [];
  readonly #waiting = new Set<() => void>();

  push(event: LoggedEvent): void {
    this.#events.push(event);
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  async *read(after: number, signal: AbortSignal): AsyncIterable<Uint8Array> {
    const first = this.#events.findIndex(({ version }) => version > after);
    for (let at = first < 0 ? this.#events.length : first; !signal.aborted; at += 1) {
      const event = this.#events[at] ?? (await this.#next(at, signal));
      if (event === undefined) return;
      yield Buffer.from(event.line);
    }
  }

  /** Undefined when the signal aborts. */
  async #next(at: number, signal: AbortSignal): Promise<LoggedEvent | undefined> {
    await new Promise<void>((resolve) => {
      this.#waiting.add(resolve);
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    return this.#events[at];
  }
}
