// SPDX-License-Identifier: Apache-2.0
// One gRPC listener: HTTP/2 only, gRPC only, bounded in everything that a client can make grow.
import {
  constants,
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type Http2ServerRequest,
  Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { type SecureContextOptions, TLSSocket } from 'node:tls';
import type { ConnectRouter, Interceptor } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import type { Clock } from '../../ports/clock.ts';
import { InvalidConfig } from '../../ports/errors.ts';
import { isAllowed, namesOf } from './allow-list.ts';
import {
  type CertificatePaths,
  type ReadText,
  readCertificates,
  watchCertificates,
} from './certificates.ts';

export const MESSAGE_MAX_BYTES = 4 * 2 ** 20;

/** The autoscaler is next door: packing an answer takes longer than sending it. */
const COMPRESS_FROM_BYTES = 2 ** 20;

const HANDSHAKE_TIMEOUT_MS = 10_000;
/** A stream on which nothing moves; the autoscaler gives a call 5 seconds by default. */
const STREAM_IDLE_MS = 60_000;
const CONNECTIONS_MAX = 2_000;
const STREAMS_PER_CONNECTION = 256;
const SESSION_MEMORY_MIB = 32;
const CLOSE_WITHIN_MS = 5_000;

export type Security =
  | { readonly kind: 'plaintext' }
  /** Undefined: clients show no certificate. */
  | {
      readonly kind: 'tls';
      readonly paths: CertificatePaths;
      readonly allow: readonly string[] | undefined;
    };

export interface ListenerOptions {
  readonly listen: { readonly host: string; readonly port: number };
  readonly security: Security;
  readonly routes: (router: ConnectRouter) => void;
  readonly interceptors: readonly Interceptor[];
  /** Over all connections; the messages of all of them are in memory together. */
  readonly callsAtOnce: number;
  readonly clock: Clock;
  readonly read: ReadText;
  readonly warn: (message: string) => void;
}

export interface Listener {
  readonly port: number;
  /** Lets calls under way end, within a bound. */
  close(): Promise<void>;
}

type Handler = (request: Http2ServerRequest, response: Http2ServerResponse) => void;

export async function listen(options: ListenerOptions): Promise<Listener> {
  const abort = new AbortController();
  const handler = connectNodeAdapter({
    routes: options.routes,
    grpc: true,
    grpcWeb: false,
    connect: false,
    readMaxBytes: MESSAGE_MAX_BYTES,
    compressMinBytes: COMPRESS_FROM_BYTES,
    // Each would cost a hundred times what it is on the wire.
    binaryOptions: { readUnknownFields: false },
    interceptors: [...options.interceptors],
    shutdownSignal: abort.signal,
    fallback: (_request, response) => {
      // Always so: the servers below speak HTTP/2 only.
      if (response instanceof Http2ServerResponse)
        refuseGrpc(response, UNIMPLEMENTED, 'no such RPC');
    },
  });
  const sessions = new Set<ServerHttp2Session>();
  const { server, watching } = await open(options, {
    handler: guard(handler, options),
    signal: abort.signal,
    onClientCa: () => sayGoodbye(sessions),
  });
  server.on('session', (session: ServerHttp2Session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
    // Resets and broken frames end a session, never the process.
    session.on('error', () => undefined);
  });
  server.maxConnections = CONNECTIONS_MAX;
  await bound(server, options);
  return {
    port: portOf(server),
    async close() {
      abort.abort();
      await Promise.all([ended(server, sessions, options.clock), watching]);
    },
  };
}

interface Opened {
  readonly server: Http2Server | Http2SecureServer;
  readonly watching: Promise<void>;
}

interface Opening {
  readonly handler: Handler;
  readonly signal: AbortSignal;
  /** Clients of another CA than so far are let in now, and maybe those of the former no longer. */
  readonly onClientCa: () => void;
}

async function open(
  options: ListenerOptions,
  { handler, signal, onClientCa }: Opening,
): Promise<Opened> {
  const limits = {
    maxSessionMemory: SESSION_MEMORY_MIB,
    settings: { maxConcurrentStreams: STREAMS_PER_CONNECTION, maxHeaderListSize: 16_384 },
  };
  const { security, read, clock, warn } = options;
  if (security.kind === 'plaintext') {
    return { server: createServer(limits, handler), watching: Promise.resolve() };
  }
  const { paths, allow } = security;
  const current = await readCertificates({ paths, read });
  const server = createSecureServer(
    {
      ...limits,
      ...current,
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      requestCert: allow !== undefined,
      rejectUnauthorized: allow !== undefined,
      ALPNProtocols: ['h2'],
    },
    handler,
  );
  // Failed handshakes are the client's trouble.
  server.on('tlsClientError', () => undefined);
  let { ca } = current;
  const onChange = (context: SecureContextOptions) => {
    server.setSecureContext(context);
    if (context.ca !== ca) onClientCa();
    ({ ca } = context);
  };
  const watching = watchCertificates({ paths, read, clock, signal, current, onChange, warn });
  return { server, watching };
}

/** Only gRPC, and only for those on the list; a refused client learns why. */
function guard(next: Handler, { security, callsAtOnce }: ListenerOptions): Handler {
  const allow = security.kind === 'tls' ? security.allow : undefined;
  const handler = limited(next, callsAtOnce);
  return (request, response) => {
    response.stream.on('error', () => undefined);
    response.stream.setTimeout(STREAM_IDLE_MS, () => response.stream.close());
    // What is still to come after the answer fills the window that all calls of the connection share.
    response.once('finish', () => {
      if (!request.complete) response.stream.close(constants.NGHTTP2_NO_ERROR);
    });
    if (!isGrpc(request.headers['content-type'])) return refuse(response);
    if (allow === undefined) return handler(request, response);
    const { socket } = request.stream.session ?? {};
    const names = socket instanceof TLSSocket ? namesOf(socket.getPeerCertificate()) : [];
    if (isAllowed(names, allow)) return handler(request, response);
    const message = `client certificate of ${JSON.stringify(names)} is not on the list`;
    refuseGrpc(response, PERMISSION_DENIED, message);
  };
}

function limited(handler: Handler, callsAtOnce: number): Handler {
  let calls = 0;
  return (request, response) => {
    if (calls >= callsAtOnce) {
      return refuseGrpc(response, RESOURCE_EXHAUSTED, `${callsAtOnce} calls are under way`);
    }
    calls += 1;
    response.stream.once('close', () => {
      calls -= 1;
    });
    handler(request, response);
  };
}

function isGrpc(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/grpc(\+proto)?(;|$)/.test(contentType);
}

function refuse(response: Http2ServerResponse): void {
  response.stream.respond({ ':status': 415 }, { endStream: true });
  response.stream.close();
}

const PERMISSION_DENIED = '7';
const RESOURCE_EXHAUSTED = '8';
const UNIMPLEMENTED = '12';

function refuseGrpc({ stream }: Http2ServerResponse, status: string, message: string): void {
  stream.respond(
    {
      ':status': 200,
      'content-type': 'application/grpc',
      'grpc-status': status,
      'grpc-message': encodeURIComponent(message).replaceAll('%20', ' '),
    },
    { endStream: true },
  );
}

function bound(
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

function portOf(server: Http2Server | Http2SecureServer): number {
  const address: AddressInfo | string | null = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** What was begun on them ends; whatever comes next needs a new connection. */
function sayGoodbye(sessions: ReadonlySet<ServerHttp2Session>): void {
  for (const session of sessions) session.close();
}

/** Sessions of the autoscaler stay open for ever; they are told to go, and made to. */
async function ended(
  server: Http2Server | Http2SecureServer,
  sessions: ReadonlySet<ServerHttp2Session>,
  clock: Clock,
): Promise<void> {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  sayGoodbye(sessions);
  const patience = new AbortController();
  const late = clock.sleep(CLOSE_WITHIN_MS, { signal: patience.signal }).catch(() => undefined);
  await Promise.race([closed, late]);
  patience.abort();
  for (const session of sessions) session.destroy();
  await closed;
}
