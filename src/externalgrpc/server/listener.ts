// SPDX-License-Identifier: Apache-2.0
// One gRPC listener: HTTP/2 only, gRPC only, with a limit on every resource that a client can use.
import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type Http2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { type SecureContextOptions, TLSSocket } from 'node:tls';
import type { Clock } from '../../ports/clock.ts';
import { InvalidConfig } from '../../ports/errors.ts';
import { isAllowed, readCertificateNames } from './allow-list.ts';
import {
  type CertificatePaths,
  type ReadText,
  readCertificates,
  watchCertificates,
} from './certificates.ts';
import { Connections } from './connections.ts';
import { type DispatchOptions, dispatchCalls, type StreamHandler } from './dispatch.ts';
import { refuseGrpc, refuseHttp } from './refuse.ts';

const HANDSHAKE_TIMEOUT_MS = 10_000;
const MAX_STREAMS_PER_CONNECTION = 256;
const SESSION_MEMORY_MIB = 32;
const CLOSE_TIMEOUT_MS = 5_000;

export type Security =
  | { readonly kind: 'plaintext' }
  /** allow undefined: clients need no certificate. */
  | {
      readonly kind: 'tls';
      readonly paths: CertificatePaths;
      readonly allow: readonly string[] | undefined;
    };

export interface ListenerOptions
  extends Pick<DispatchOptions, 'services' | 'intercept' | 'clock' | 'stallTimeoutMs'> {
  readonly listen: { readonly host: string; readonly port: number };
  readonly security: Security;
  /** Over all connections: the messages of all calls are in memory together. */
  readonly maxConcurrentCalls: number;
  readonly read: ReadText;
  readonly warn: (message: string) => void;
}

export interface Listener {
  readonly port: number;
  /** Accepts no connection any more, and lets running calls finish, up to a timeout. Idempotent. */
  close(): Promise<void>;
}

export async function listen(options: ListenerOptions): Promise<Listener> {
  const { clock } = options;
  const abort = new AbortController();
  const connections = new Connections(clock);
  const handler = admitCalls(dispatchCalls({ ...options, shutdown: abort.signal }), {
    allow: options.security.kind === 'tls' ? options.security.allow : undefined,
    maxConcurrentCalls: options.maxConcurrentCalls,
    connections,
  });
  const { server, watching } = await openServer(options, {
    signal: abort.signal,
    onClientCaChange: () => connections.closeGracefully(),
  });
  connections.track(server);
  // The stream event, not the request event: that creates two more objects per call.
  server.on('stream', handler);
  await bindServer(server, options);
  const sweeping = connections.sweep(abort.signal);
  const closeAll = async () => {
    abort.abort();
    await Promise.all([closeServer(server, connections, clock), watching, sweeping]);
  };
  let closing: Promise<void> | undefined;
  return {
    port: listeningPort(server),
    close: () => {
      closing ??= closeAll();
      return closing;
    },
  };
}

interface OpenedServer {
  readonly server: Http2Server | Http2SecureServer;
  readonly watching: Promise<void>;
}

interface OpenOptions {
  readonly signal: AbortSignal;
  /** The client CA has changed: existing connections may no longer be allowed. */
  readonly onClientCaChange: () => void;
}

async function openServer(
  options: ListenerOptions,
  { signal, onClientCaChange }: OpenOptions,
): Promise<OpenedServer> {
  const limits = {
    maxSessionMemory: SESSION_MEMORY_MIB,
    settings: { maxConcurrentStreams: MAX_STREAMS_PER_CONNECTION, maxHeaderListSize: 16_384 },
  };
  const { security, read, clock, warn } = options;
  if (security.kind === 'plaintext') {
    return { server: createServer(limits), watching: Promise.resolve() };
  }
  const { paths, allow } = security;
  const current = await readCertificates({ paths, read });
  const server = createSecureServer({
    ...limits,
    ...current,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    requestCert: allow !== undefined,
    rejectUnauthorized: allow !== undefined,
    ALPNProtocols: ['h2'],
  });
  // A failed handshake concerns the client only.
  server.on('tlsClientError', () => undefined);
  let { ca } = current;
  const onChange = (context: SecureContextOptions) => {
    server.setSecureContext(context);
    if (context.ca !== ca) onClientCaChange();
    ({ ca } = context);
  };
  const watching = watchCertificates({ paths, read, clock, signal, current, onChange, warn });
  return { server, watching };
}

function bindServer(
  server: Http2Server | Http2SecureServer,
  { listen }: ListenerOptions,
): Promise<void> {
  const { host, port } = listen;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', (cause) =>
    reject(
      new InvalidConfig('CONFIG_INVALID', `cannot listen on ${host}:${port}: ${String(cause)}`, {
        cause,
      }),
    ),
  );
  server.listen({ port, ...(host !== '' && { host }) }, resolve);
  return promise;
}

function listeningPort(server: Http2Server | Http2SecureServer): number {
  const address: AddressInfo | string | null = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** The autoscaler never closes its connection itself: it gets a GOAWAY, and after a timeout the connection is destroyed. */
async function closeServer(
  server: Http2Server | Http2SecureServer,
  connections: Connections,
  clock: Clock,
): Promise<void> {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  connections.closeGracefully();
  const timer = new AbortController();
  const timeout = clock.sleep(CLOSE_TIMEOUT_MS, { signal: timer.signal }).catch(() => undefined);
  await Promise.race([closed, timeout]);
  timer.abort();
  connections.destroy();
  await closed;
}

// Decides which calls are admitted: gRPC only, allowed clients only, within the load limits. A refusal states its reason.

/** Responses that clients requested and have not read. */
const MAX_UNREAD_BYTES = 64 * 2 ** 20;

/** The names are sent in a header. */
const MAX_NAMES_LENGTH = 500;

interface AdmissionOptions {
  /** Undefined: clients need no certificate. */
  readonly allow: readonly string[] | undefined;
  readonly maxConcurrentCalls: number;
  readonly connections: Connections;
}

function admitCalls(next: StreamHandler, options: AdmissionOptions): StreamHandler {
  const { allow, connections } = options;
  const handler = limitLoad(next, options.maxConcurrentCalls);
  const authorizer = new ClientAuthorizer(allow);
  return (stream, headers) => {
    stream.on('error', () => undefined);
    if (headers[':method'] !== 'POST') return refuseHttp(stream, 405);
    if (!isGrpc(headers['content-type'])) return refuseHttp(stream, 415);
    const refusal = authorizer.refusal(stream);
    if (refusal !== undefined) {
      return refuseGrpc(stream, { status: 'PermissionDenied', message: refusal });
    }
    connections.callStarted(stream);
    const { 'grpc-encoding': encoding = 'identity' } = headers;
    if (encoding === 'identity') return handler(stream, headers);
    // The autoscaler never compresses, and a compressed message may expand a thousandfold.
    const message = `grpc-encoding ${JSON.stringify(encoding)} is not supported; use identity`;
    const accepted = { 'grpc-accept-encoding': 'identity' };
    refuseGrpc(stream, { status: 'Unimplemented', message }, accepted);
  };
}

/** Checks each connection once: its certificate does not change. */
class ClientAuthorizer {
  readonly #allow: readonly string[] | undefined;
  readonly #refusals = new WeakMap<Http2Session, string | undefined>();

  constructor(allow: readonly string[] | undefined) {
    this.#allow = allow;
  }

  /** The reason for a refusal; undefined for an allowed client. */
  refusal({ session }: ServerHttp2Stream): string | undefined {
    if (this.#allow === undefined) return undefined;
    if (session === undefined) return 'the connection is closed';
    if (!this.#refusals.has(session))
      this.#refusals.set(session, refuseClient(session, this.#allow));
    return this.#refusals.get(session);
  }
}

function refuseClient({ socket }: Http2Session, allow: readonly string[]): string | undefined {
  const names =
    socket instanceof TLSSocket ? readCertificateNames(socket.getPeerCertificate()) : [];
  if (isAllowed(names, allow)) return undefined;
  const shown = JSON.stringify(names.map(({ text }) => text)).slice(0, MAX_NAMES_LENGTH);
  return `the names ${shown} of the client certificate are not in grpc.tls.allow`;
}

function limitLoad(handler: StreamHandler, maxConcurrentCalls: number): StreamHandler {
  const calls = new Set<ServerHttp2Stream>();
  return (stream, headers) => {
    const problem = overloadReason(calls, maxConcurrentCalls);
    if (problem !== undefined) {
      return refuseGrpc(stream, { status: 'ResourceExhausted', message: problem });
    }
    calls.add(stream);
    stream.once('close', () => calls.delete(stream));
    handler(stream, headers);
  };
}

function overloadReason(
  calls: ReadonlySet<ServerHttp2Stream>,
  maxConcurrentCalls: number,
): string | undefined {
  if (calls.size >= maxConcurrentCalls) return `${maxConcurrentCalls} calls are in progress`;
  let unreadBytes = 0;
  for (const { writableLength } of calls) unreadBytes += writableLength;
  return unreadBytes > MAX_UNREAD_BYTES
    ? `responses of ${unreadBytes} bytes are not read yet`
    : undefined;
}

function isGrpc(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/grpc(\+proto)?(;|$)/.test(contentType);
}
