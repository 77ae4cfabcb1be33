// SPDX-License-Identifier: Apache-2.0
import { Readable } from 'node:stream';
import { Agent, buildConnector, type Dispatcher } from 'undici';
import { Cancelled, TimedOut } from '../ports/errors.ts';
import type {
  SizedBody,
  Transport,
  TransportRequest,
  TransportResponse,
} from '../ports/transport.ts';
import { translateSocketError, type UnreachableCode } from './socket-errors.ts';
import { pinnedConnector } from './tls-pinning.ts';

/** The client certificate for servers that request one. */
export interface ClientIdentity {
  readonly certPem: string;
  readonly keyPem: string;
}

export type TransportTls =
  /** Verifies chain and host name against the system's roots, or only against `caPem`. */
  | {
      readonly kind: 'verify';
      readonly caPem?: string;
      readonly client?: ClientIdentity;
      /** Name to verify in the certificate instead of the URL's host. */
      readonly serverName?: string;
    }
  /** The leaf certificate must be one of these (SHA-256, hex, colons optional); chain and name are not verified. */
  | { readonly kind: 'fingerprints'; readonly sha256: readonly string[] }
  /** Verifies nothing: a man in the middle can read and change all traffic. The caller logs a warning. */
  | { readonly kind: 'insecure'; readonly client?: ClientIdentity };

export interface HttpTransportOptions {
  readonly tls?: TransportTls;
  /** Limit for TCP connect and TLS handshake. */
  readonly connectTimeoutMs?: number;
  /** Must be below the server's own limit; otherwise requests race with the server closing the connection. */
  readonly keepAliveMs?: number;
  /** Error code to use when the peer is unreachable. */
  readonly unreachable?: UnreachableCode;
}

const CONNECT_TIMEOUT_MS = 5_000;
/** Proxmox closes after 5 s without a request. */
const KEEP_ALIVE_MS = 3_500;

export function createHttpTransport(options: HttpTransportOptions = {}): Transport {
  return new HttpTransport(options);
}

class HttpTransport implements Transport {
  readonly #agent: Agent;
  readonly #unreachable: UnreachableCode;

  constructor(options: HttpTransportOptions) {
    this.#unreachable = options.unreachable ?? 'PVE_UNREACHABLE';
    const keepAliveMs = options.keepAliveMs ?? KEEP_ALIVE_MS;
    this.#agent = new Agent({
      connect: connector(options),
      // HTTP/2 has no reason phrase, and older Proxmox versions put the error message there.
      allowH2: false,
      pipelining: 1,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMs,
      // Exchange limits the time for the headers; a body may stream for as long as its signal allows.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    if (request.signal?.aborted === true) throw cancelled(false);
    const exchange = new Exchange(request, this.#unreachable);
    try {
      const dispatcher: Dispatcher = this.#agent.compose(exchange.observeStart);
      const response = await dispatcher.request({
        ...target(request.url),
        method: request.method,
        headers: headersOf(request),
        body: bodyOf(request.body),
        signal: exchange.signal,
      });
      return {
        status: response.statusCode,
        reason: response.statusText,
        headers: plainHeaders(response.headers),
        body: exchange.translateErrors(response.body),
      };
    } catch (error) {
      throw exchange.translate(error);
    } finally {
      exchange.stopTimer();
    }
  }

  close(): Promise<void> {
    // Agent.close waits for requests in progress; they continue until their signals abort, so it is not awaited.
    void this.#agent.close().catch(() => undefined);
    return Promise.resolve();
  }
}

/** State of one exchange: header timeout, whether bytes may have been sent, and the translation of its errors. */
class Exchange {
  readonly signal: AbortSignal;
  readonly #request: TransportRequest;
  readonly #unreachable: UnreachableCode;
  readonly #headTimeout = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #started = false;

  constructor(request: TransportRequest, unreachable: UnreachableCode) {
    this.#request = request;
    this.#unreachable = unreachable;
    this.signal =
      request.signal === undefined
        ? this.#headTimeout.signal
        : AbortSignal.any([request.signal, this.#headTimeout.signal]);
    this.#timer = setTimeout(() => this.#headTimeout.abort(), request.headTimeoutMs);
  }

  /** Records when bytes may be on the wire; before that the peer has certainly received nothing. */
  readonly observeStart: Dispatcher.DispatcherComposeInterceptor =
    (dispatch) => (options, handler) =>
      dispatch(options, {
        onRequestStart: (controller, context) => {
          this.#started = true;
          handler.onRequestStart?.(controller, context);
        },
        onResponseStart: (...head) => handler.onResponseStart?.(...head),
        onResponseData: (...data) => handler.onResponseData?.(...data),
        onResponseEnd: (...end) => handler.onResponseEnd?.(...end),
        onResponseError: (...error) => handler.onResponseError?.(...error),
      });

  stopTimer(): void {
    clearTimeout(this.#timer);
  }

  async *translateErrors(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    try {
      yield* body;
    } catch (error) {
      throw this.translate(error);
    }
  }

  translate(error: unknown): Error {
    if (this.#request.signal?.aborted === true) return cancelled(this.#started);
    if (this.#headTimeout.signal.aborted) {
      return new TimedOut(
        'REQUEST_TIMED_OUT',
        `${origin(this.#request.url)} did not respond within ${this.#request.headTimeoutMs} ms`,
        { facts: { requestSent: this.#started } },
      );
    }
    return translateSocketError(error, {
      origin: origin(this.#request.url),
      requestSent: this.#started,
      unreachable: this.#unreachable,
    });
  }
}

function cancelled(requestSent: boolean): Cancelled {
  return new Cancelled('CANCELLED', 'the request was cancelled', { facts: { requestSent } });
}

function connector(options: HttpTransportOptions): buildConnector.connector {
  const timeout = options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
  const tls = options.tls ?? { kind: 'verify' };
  if (tls.kind === 'fingerprints') return pinnedConnector(tls.sha256, timeout);
  const { client } = tls;
  const identity = client === undefined ? {} : { cert: client.certPem, key: client.keyPem };
  const common = { timeout, allowH2: false, ...identity };
  if (tls.kind === 'insecure') return buildConnector({ ...common, rejectUnauthorized: false });
  const { caPem, serverName } = tls;
  return buildConnector({
    ...common,
    ...(caPem !== undefined && { ca: caPem }),
    ...(serverName !== undefined && { servername: serverName }),
  });
}

function target(url: string): { readonly origin: string; readonly path: string } {
  const parsed = new URL(url);
  return { origin: parsed.origin, path: `${parsed.pathname}${parsed.search}` };
}

/** Never the whole URL: its query may contain secrets. */
function origin(url: string): string {
  return new URL(url).origin;
}

function isSized(body: TransportRequest['body']): body is SizedBody {
  return typeof body === 'object' && 'open' in body;
}

function headersOf(request: TransportRequest): Record<string, string> {
  const headers = { ...request.headers };
  // Without a length undici sends an iterable in chunks, which Proxmox refuses.
  if (isSized(request.body)) headers['content-length'] = String(request.body.byteLength);
  return headers;
}

function bodyOf(body: TransportRequest['body']): string | Uint8Array | Readable | null {
  if (body === undefined) return null;
  return isSized(body) ? Readable.from(body.open(), { objectMode: false }) : body;
}

function plainHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  const plain: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) {
      plain[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value;
    }
  }
  return plain;
}
