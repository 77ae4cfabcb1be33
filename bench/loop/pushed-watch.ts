// SPDX-License-Identifier: Apache-2.0
// A transport to an API server in this process, whose watch events the benchmark sends.
import type { Transport, TransportRequest, TransportResponse } from '../../src/ports/transport.ts';
import type { ApiObject } from './cluster.ts';

export class PushedWatch implements Transport {
  readonly #lists: ReadonlyMap<string, readonly ApiObject[]>;
  readonly #streams = new Map<string, (line: string) => void>();
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
    this.#streams.get(resource)?.(`${JSON.stringify({ type, object })}\n`);
  }

  request({ url, signal }: TransportRequest): Promise<TransportResponse> {
    const { pathname, searchParams } = new URL(url);
    const resource = pathname.split('/').at(-1) ?? '';
    const body = searchParams.has('watch')
      ? this.#stream(resource, signal)
      : this.#list(resource, searchParams);
    return Promise.resolve({ status: 200, reason: 'OK', headers: {}, body });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async *#list(resource: string, query: URLSearchParams): AsyncIterable<Uint8Array> {
    const all = this.#lists.get(resource) ?? [];
    const from = Number(query.get('continue') ?? 0);
    const end = Math.min(all.length, from + Number(query.get('limit') ?? all.length));
    const metadata = { resourceVersion: '1', ...(end < all.length && { continue: String(end) }) };
    yield Buffer.from(JSON.stringify({ metadata, items: all.slice(from, end) }));
  }

  /** Until the signal: the benchmark is shorter than a watch. */
  async *#stream(resource: string, signal: AbortSignal | undefined): AsyncIterable<Uint8Array> {
    const lines = new WaitingLines();
    this.#streams.set(resource, (line) => lines.push(line));
    signal?.addEventListener('abort', () => lines.push(undefined), { once: true });
    for (let line = await lines.next(); line !== undefined; line = await lines.next())
      yield Buffer.from(line);
  }
}

class WaitingLines {
  readonly #lines: (string | undefined)[] = [];
  #wake: () => void = () => undefined;

  /** Undefined ends the stream. */
  push(line: string | undefined): void {
    this.#lines.push(line);
    this.#wake();
  }

  async next(): Promise<string | undefined> {
    if (this.#lines.length === 0)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    return this.#lines.shift();
  }
}
