// SPDX-License-Identifier: Apache-2.0
// One request to the API server: returns parsed JSON or a Status. Never retries, never interprets the result.
import type { Clock } from '../ports/clock.ts';
import { Bug, Cancelled, PvescalerError, TimedOut, Unreachable } from '../ports/errors.ts';
import type { Transport, TransportRequest, TransportResponse } from '../ports/transport.ts';
import { type ApiStatus, readStatus, translateStatus } from './status.ts';

/** Name under which the API server records our changes in managedFields. */
export const FIELD_MANAGER = 'pvescaler';

interface ApiRequest {
  readonly method?: TransportRequest['method'];
  /** Starts with a slash; names in it are already URL-encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly contentType?: string;
  /** For error messages: `patch node worker-1`. */
  readonly operation: string;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number;
  /** See `TransportRequest`. */
  readonly maySend?: TransportRequest['maySend'];
}

export type ApiResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly status: ApiStatus };

interface ApiClientOptions {
  readonly transport: Transport;
  /** Base URL of the API server. */
  readonly server: string;
  readonly clock: Clock;
  /** Limit for every request except watches; the next leader waits at least this long before it acts. */
  readonly requestTimeoutMs: number;
}

/** An API server that has been started answers before it has read the roles, and refuses everything until then. */
const STARTING_MS = 30_000;

export class ApiClient {
  readonly #options: ApiClientOptions;
  readonly #server: string;
  /** Monotonic time of the last connection that failed or ended with an error. */
  #failedAt = -Infinity;

  constructor(options: ApiClientOptions) {
    this.#options = options;
    this.#server = options.server.replace(/\/+$/, '');
  }

  /** Resolves with any valid response, errors included: the caller knows which statuses it expects. */
  async request<T>(request: ApiRequest): Promise<ApiResult<T>> {
    const timeoutMs = request.timeoutMs ?? this.#options.requestTimeoutMs;
    return this.#withTimeout(timeoutMs, request, async (signal) => {
      const response = await this.#send(request, { signal, timeoutMs });
      const text = await readText(response.body);
      if (response.status >= 200 && response.status < 300) {
        // The caller names the type that the path returns; the API server has validated the object.
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see above
        return { ok: true, value: parseJson(text, request.operation) as T };
      }
      return { ok: false, status: this.#readStatus(request, response.status, text) };
    });
  }

  /** Rejects with the translated error for every status that is not a success. */
  async requestOrThrow<T>(request: ApiRequest): Promise<T> {
    const result = await this.request<T>(request);
    if (result.ok) return result.value;
    throw translateStatus(result.status, request.operation);
  }

  /** The caller reads the body for as long as the signal allows. */
  async openStream(
    request: ApiRequest,
  ): Promise<
    | { readonly ok: true; readonly body: AsyncIterable<Uint8Array> }
    | { readonly ok: false; readonly status: ApiStatus }
  > {
    const { signal } = request;
    const timeoutMs = request.timeoutMs ?? this.#options.requestTimeoutMs;
    const response = await this.#send(request, { signal, timeoutMs, streamsResponse: true });
    if (response.status === 200) return { ok: true, body: this.#observe(response.body, signal) };
    const text = await readText(response.body);
    return { ok: false, status: this.#readStatus(request, response.status, text) };
  }

  /** A refusal of a server that may just have been started is no lasting one: it throws as if there was no server. */
  #readStatus({ operation }: ApiRequest, httpStatus: number, text: string): ApiStatus {
    const status = readStatus(httpStatus, parseJsonOrUndefined(text));
    const isStarting = this.#options.clock.monotonic() - this.#failedAt < STARTING_MS;
    if (status.code !== 403 || !isStarting) return status;
    const message = `${operation}: refused right after the API server was unreachable: ${status.message}`;
    const facts = { httpStatus: status.code, requestSent: false };
    throw new Unreachable('KUBERNETES_UNREACHABLE', message, { facts });
  }

  async *#observe(
    body: AsyncIterable<Uint8Array>,
    signal: AbortSignal | undefined,
  ): AsyncIterable<Uint8Array> {
    try {
      yield* body;
    } catch (error) {
      this.#recordFailure(error, signal);
      throw error;
    }
  }

  #recordFailure(error: unknown, signal: AbortSignal | undefined): void {
    const isOfServer = !(error instanceof PvescalerError) || error.class === 'Unreachable';
    if (isOfServer && !isAborted(signal)) this.#failedAt = this.#options.clock.monotonic();
  }

  async #send(
    request: ApiRequest,
    limits: Pick<TransportRequest, 'signal' | 'timeoutMs' | 'streamsResponse'>,
  ): Promise<TransportResponse> {
    try {
      return await this.#transmit(request, limits);
    } catch (error) {
      this.#recordFailure(error, limits.signal);
      throw error;
    }
  }

  #transmit(
    request: ApiRequest,
    limits: Pick<TransportRequest, 'signal' | 'timeoutMs' | 'streamsResponse'>,
  ): Promise<TransportResponse> {
    const query = new URLSearchParams(request.query).toString();
    const url = `${this.#server}${request.path}${query === '' ? '' : `?${query}`}`;
    const { maySend } = request;
    const common = {
      method: request.method ?? 'GET',
      url,
      ...limits,
      ...(maySend && { maySend }),
    } as const;
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

  /** Limits the time for the whole response, body included. */
  // oxlint-disable-next-line max-params -- a wrapper: limit, request and work
  async #withTimeout<T>(
    timeoutMs: number,
    { signal, operation }: ApiRequest,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    if (isAborted(signal)) throw new Cancelled('CANCELLED', `${operation} was cancelled`);
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
        const message = `${operation}: no whole response within ${timeoutMs} ms${progressOf(error)}`;
        const facts = { requestSent: true };
        throw new TimedOut('REQUEST_TIMED_OUT', message, { cause: error, facts });
      }
      throw error;
    } finally {
      done.abort();
    }
  }
}

/** A function, because TypeScript would keep the value narrowed across an await. */
function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

/** Where the exchange stopped, if the transport says so. */
function progressOf(error: unknown): string {
  const progress = error instanceof PvescalerError ? error.facts['progress'] : undefined;
  return progress === undefined ? '' : `: ${progress}`;
}

async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts).toString('utf8');
}

function parseJson(text: string, operation: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Bug('UNEXPECTED_ANSWER', `${operation}: the response is not JSON`, { cause: error });
  }
}

/** Undefined for anything but JSON: a proxy in front of the API server may respond with HTML. */
function parseJsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Joins names to a path and URL-encodes each. */
export function apiPath(...names: readonly string[]): string {
  return `/${names.map(encodeURIComponent).join('/')}`;
}
