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
import { translateSocketError, type UnreachablePeer } from './socket-errors.ts';
import { pinnedConnector } from './tls-pinning.ts';

/** Who we are to the server, where it asks for a certificate. */
export interface ClientIdentity {
  readonly certPem: string;
  readonly keyPem: string;
}

export type TransportTls =
  /** Chain and host name are checked, against the system's roots or only against these. */
  | {
      readonly kind: 'verify';
      readonly caPem?: string;
      readonly client?: ClientIdentity;
      /** What the certificate is checked for, where it is not the URL's host. */
      readonly serverName?: string;
    }
  /** The leaf certificate is one of these (SHA-256, hex, colons optional); chain and name do not matter. */
  | { readonly kind: 'fingerprints'; readonly sha256: readonly string[] }
  /** Anybody in between can read and change everything. The caller warns. */
  | { readonly kind: 'insecure'; readonly client?: ClientIdentity };

export interface HttpTransportOptions {
  readonly tls?: TransportTls;
  /** A server that is gone without a word is noticed after this. */
  readonly connectTimeoutMs?: number;
  /** Below the server's own, or a request meets a connection that is just being closed. */
  readonly keepAliveMs?: number;
  /** The code of Unreachable: which peer this transport is for. */
  readonly unreachable?: UnreachablePeer;
}

const CONNECT_TIMEOUT_MS = 5_000;
/** Proxmox closes after 5 s without a request. */
const KEEP_ALIVE_MS = 3_500;

export function createHttpTransport(options: HttpTransportOptions = {}): Transport {
  return new HttpTransport(options);
}

class HttpTransport implements Transport {
  readonly #agent: Agent;
  readonly #unreachable: UnreachablePeer;

  constructor(options: HttpTransportOptions) {
    this.#unreachable = options.unreachable ?? 'PVE_UNREACHABLE';
    const keepAliveMs = options.keepAliveMs ?? KEEP_ALIVE_MS;
    this.#agent = new Agent({
      connect: connector(options),
      // HTTP/2 has no reason phrase, and that is where older Proxmox versions put an error's text.
      allowH2: false,
      pipelining: 1,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMs,
      // The head has its own clock below; a body may stream for as long as its signal allows.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    if (request.signal?.aborted === true) throw cancelled(false);
    const exchange = new Exchange(request, this.#unreachable);
    try {
      const dispatcher: Dispatcher = this.#agent.compose(exchange.notice);
      const answer = await dispatcher.request({
        ...target(request.url),
        method: request.method,
        headers: headersOf(request),
        body: bodyOf(request.body),
        signal: exchange.signal,
      });
      return {
        status: answer.statusCode,
        reason: answer.statusText,
        headers: plainHeaders(answer.headers),
        body: exchange.guard(answer.body),
      };
    } catch (error) {
      throw exchange.translate(error);
    } finally {
      exchange.headArrived();
    }
  }

  close(): Promise<void> {
    // Agent.close waits for requests under way; those are left to their signals, so nobody waits here.
    void this.#agent.close().catch(() => undefined);
    return Promise.resolve();
  }
}

/** One exchange: its head timeout, whether anything left for the peer, and what its failures mean. */
class Exchange {
  readonly signal: AbortSignal;
  readonly #request: TransportRequest;
  readonly #unreachable: UnreachablePeer;
  readonly #headTimeout = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #started = false;

  constructor(request: TransportRequest, unreachable: UnreachablePeer) {
    this.#request = request;
    this.#unreachable = unreachable;
    this.signal =
      request.signal === undefined
        ? this.#headTimeout.signal
        : AbortSignal.any([request.signal, this.#headTimeout.signal]);
    this.#timer = setTimeout(() => this.#headTimeout.abort(), request.headTimeoutMs);
  }

  /** Marks the moment from which bytes may be on the wire; before it, the peer certainly has nothing. */
  readonly notice: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) =>
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

  headArrived(): void {
    clearTimeout(this.#timer);
  }

  async *guard(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
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
        `${origin(this.#request.url)} did not answer within ${this.#request.headTimeoutMs} ms`,
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
  return new Cancelled('CANCELLED', 'the request was called off', { facts: { requestSent } });
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

/** Never the whole URL: a query may hold what no log should. */
function origin(url: string): string {
  return new URL(url).origin;
}

function isSized(body: TransportRequest['body']): body is SizedBody {
  return typeof body === 'object' && 'open' in body;
}

function headersOf(request: TransportRequest): Record<string, string> {
  const headers = { ...request.headers };
  // Named, the body is sent as it is; not named, an iterable would be sent in chunks, which Proxmox refuses.
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
