// SPDX-License-Identifier: Apache-2.0
import { Readable } from 'node:stream';
import { Agent, buildConnector } from 'undici';
import type { Clock } from '../ports/clock.ts';
import { Cancelled } from '../ports/errors.ts';
import type { Transport, TransportRequest, TransportResponse } from '../ports/transport.ts';
import { systemClock } from './clock.ts';
import { Exchange, isSized } from './exchange.ts';
import type { UnreachableCode } from './socket-errors.ts';
import { pinnedConnector, verifyingConnector } from './tls-pinning.ts';

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
  /** For the limits of whole exchanges. Default: the system's clock. */
  readonly clock?: Clock;
}

const CONNECT_TIMEOUT_MS = 5_000;
/** Proxmox closes after 5 s without a request. */
const KEEP_ALIVE_MS = 3_500;

export function createHttpTransport(options: HttpTransportOptions = {}): Transport {
  return new HttpTransport(options);
}

class HttpTransport implements Transport {
  readonly #agent: Agent;
  readonly #options: { readonly clock: Clock; readonly unreachable: UnreachableCode };

  constructor(options: HttpTransportOptions) {
    const { clock = systemClock, unreachable = 'PVE_UNREACHABLE' } = options;
    this.#options = { clock, unreachable };
    const keepAliveMs = options.keepAliveMs ?? KEEP_ALIVE_MS;
    this.#agent = new Agent({
      connect: connector(options),
      // HTTP/2 has no reason phrase, and older Proxmox versions put the error message there.
      allowH2: false,
      pipelining: 1,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMs,
      // Exchange limits the whole time; these restart with each byte.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    if (request.signal?.aborted === true) {
      const facts = { requestSent: false };
      throw new Cancelled('CANCELLED', 'the request was cancelled', { facts });
    }
    const exchange = new Exchange(request, this.#options);
    try {
      const response = await this.#agent.compose(exchange.observe).request({
        ...target(request.url),
        method: request.method,
        headers: headersOf(request),
        body: bodyOf(request.body, exchange),
        signal: exchange.signal,
      });
      return {
        status: response.statusCode,
        reason: response.statusText,
        headers: plainHeaders(response.headers),
        body: exchange.translateErrors(response.body),
      };
    } catch (error) {
      exchange.stopTimer();
      throw exchange.translate(error);
    }
  }

  close(): Promise<void> {
    // Agent.close waits for requests in progress; they continue until their signals abort, so it is not awaited.
    void this.#agent.close().catch(() => undefined);
    return Promise.resolve();
  }
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
  return verifyingConnector({
    ...common,
    ...(caPem !== undefined && { ca: caPem }),
    ...(serverName !== undefined && { servername: serverName }),
  });
}

function target(url: string): { readonly origin: string; readonly path: string } {
  const parsed = new URL(url);
  return { origin: parsed.origin, path: `${parsed.pathname}${parsed.search}` };
}

function headersOf(request: TransportRequest): Record<string, string> {
  const headers = { ...request.headers };
  // Without a length undici sends an iterable in chunks, which Proxmox refuses.
  if (isSized(request.body)) headers['content-length'] = String(request.body.byteLength);
  return headers;
}

function bodyOf(
  body: TransportRequest['body'],
  exchange: Exchange,
): string | Uint8Array | Readable | null {
  if (body === undefined) return null;
  return isSized(body) ? Readable.from(exchange.open(body), { objectMode: false }) : body;
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
