// SPDX-License-Identifier: Apache-2.0
// One call to the API server: path in, parsed JSON or a Status out. No retries, no meaning.
import type { Clock } from '../ports/clock.ts';
import { Bug, Cancelled, TimedOut } from '../ports/errors.ts';
import type { Transport, TransportRequest, TransportResponse } from '../ports/transport.ts';
import { type ApiStatus, readStatus, translateStatus } from './status.ts';

/** Which product changes what: kubectl shows it in managedFields. */
export const FIELD_MANAGER = 'pvescaler';

export interface ApiRequest {
  readonly method?: TransportRequest['method'];
  /** With a slash before it; names in it are encoded already. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly contentType?: string;
  /** What this is, for messages: `patch node worker-1`. */
  readonly doing: string;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number;
}

export type ApiAnswer<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly status: ApiStatus };

export interface ApiOptions {
  readonly transport: Transport;
  /** Base URL of the API server. */
  readonly server: string;
  readonly clock: Clock;
  /** No call but a watch lasts longer: what a successor of ours has to wait out. */
  readonly requestTimeoutMs: number;
}

export class Api {
  readonly #options: ApiOptions;
  readonly #server: string;

  constructor(options: ApiOptions) {
    this.#options = options;
    this.#server = options.server.replace(/\/+$/, '');
  }

  /** Any answer that is valid is an answer: who calls knows which refusals are expected. */
  async ask<T>(request: ApiRequest): Promise<ApiAnswer<T>> {
    const timeoutMs = request.timeoutMs ?? this.#options.requestTimeoutMs;
    return this.#within(timeoutMs, request, async (signal) => {
      const response = await this.#send(request, signal, timeoutMs);
      const text = await readText(response.body);
      if (response.status >= 200 && response.status < 300) {
        // The caller says what the path returns; the API server validated it.
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see above
        return { ok: true, value: parse(text, request.doing) as T };
      }
      return { ok: false, status: readStatus(response.status, parseLeniently(text)) };
    });
  }

  /** The answer, or the refusal as an error of ours. */
  async require<T>(request: ApiRequest): Promise<T> {
    const answer = await this.ask<T>(request);
    if (answer.ok) return answer.value;
    throw translateStatus(answer.status, request.doing);
  }

  /** An answer that goes on: its body is for the caller to read, for as long as the signal allows. */
  async open(
    request: ApiRequest,
  ): Promise<
    | { readonly ok: true; readonly body: AsyncIterable<Uint8Array> }
    | { readonly ok: false; readonly status: ApiStatus }
  > {
    const timeoutMs = request.timeoutMs ?? this.#options.requestTimeoutMs;
    const response = await this.#send(request, request.signal, timeoutMs);
    if (response.status === 200) return { ok: true, body: response.body };
    const text = await readText(response.body);
    return { ok: false, status: readStatus(response.status, parseLeniently(text)) };
  }

  // oxlint-disable-next-line max-params -- two of them are derived from the first by its callers
  #send(
    request: ApiRequest,
    signal: AbortSignal | undefined,
    headTimeoutMs: number,
  ): Promise<TransportResponse> {
    const query = new URLSearchParams(request.query).toString();
    const url = `${this.#server}${request.path}${query === '' ? '' : `?${query}`}`;
    const common = { method: request.method ?? 'GET', url, headTimeoutMs, signal } as const;
    if (request.body === undefined) {
      return this.#options.transport.request({
        ...common,
        headers: { accept: 'application/json' },
      });
    }
    const headers = {
      accept: 'application/json',
      'content-type': request.contentType ?? 'application/json',
    };
    return this.#options.transport.request({
      ...common,
      headers,
      body: JSON.stringify(request.body),
    });
  }

  /** Until the whole answer is here, not only its head. */
  // oxlint-disable-next-line max-params -- a wrapper: limit, what it is for, and the work
  async #within<T>(
    timeoutMs: number,
    { signal, doing }: ApiRequest,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    if (isAborted(signal)) throw new Cancelled('CANCELLED', `${doing} was called off`);
    const limit = new AbortController();
    const done = new AbortController();
    this.#options.clock.sleep(timeoutMs, { signal: done.signal }).then(
      () => limit.abort(),
      () => undefined,
    );
    try {
      return await work(signal ? AbortSignal.any([signal, limit.signal]) : limit.signal);
    } catch (error) {
      if (limit.signal.aborted && !isAborted(signal)) {
        throw new TimedOut('REQUEST_TIMED_OUT', `${doing}: no answer within ${timeoutMs} ms`, {
          cause: error,
          facts: { requestSent: true },
        });
      }
      throw error;
    } finally {
      done.abort();
    }
  }
}

/** A function, because it changes while others wait. */
function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts).toString('utf8');
}

function parse(text: string, doing: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Bug('UNEXPECTED_ANSWER', `${doing}: the answer is not JSON`, { cause: error });
  }
}

/** A proxy in front of the API server answers in HTML. */
function parseLeniently(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A path from names: each is encoded. */
export function pathOf(...names: readonly string[]): string {
  return `/${names.map(encodeURIComponent).join('/')}`;
}
