// SPDX-License-Identifier: Apache-2.0
// One gRPC listener: HTTP/2 only, gRPC only, with a limit on every resource that a client can use.
import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import type { Clock } from '../../ports/clock.ts';
import { InvalidConfig } from '../../ports/errors.ts';
import { admitCalls } from './admission.ts';
import {
  type CertificatePaths,
  type ReadText,
  readCertificates,
  watchCertificates,
} from './certificates.ts';
import { Connections } from './connections.ts';
import { type DispatchOptions, dispatchCalls } from './dispatch.ts';

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
  /** Lets running calls finish, up to a timeout. */
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
  return {
    port: listeningPort(server),
    async close() {
      abort.abort();
      await Promise.all([closeServer(server, connections, clock), watching, sweeping]);
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
