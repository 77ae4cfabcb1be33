// SPDX-License-Identifier: Apache-2.0
// One gRPC listener: HTTP/2 only, gRPC only, bounded in everything that a client can make grow.
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
import { admitted } from './admission.ts';
import { type AnsweringOptions, answerCalls } from './answer-calls.ts';
import {
  type CertificatePaths,
  type ReadText,
  readCertificates,
  watchCertificates,
} from './certificates.ts';
import { Connections } from './connections.ts';

const HANDSHAKE_TIMEOUT_MS = 10_000;
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

export interface ListenerOptions
  extends Pick<AnsweringOptions, 'services' | 'around' | 'clock' | 'stillMaxMs'> {
  readonly listen: { readonly host: string; readonly port: number };
  readonly security: Security;
  /** Over all connections; the messages of all of them are in memory together. */
  readonly callsAtOnce: number;
  readonly read: ReadText;
  readonly warn: (message: string) => void;
}

export interface Listener {
  readonly port: number;
  /** Lets calls under way end, within a bound. */
  close(): Promise<void>;
}

export async function listen(options: ListenerOptions): Promise<Listener> {
  const { clock } = options;
  const abort = new AbortController();
  const connections = new Connections(clock);
  const handler = admitted(answerCalls({ ...options, shutdown: abort.signal }), {
    allow: options.security.kind === 'tls' ? options.security.allow : undefined,
    callsAtOnce: options.callsAtOnce,
    connections,
  });
  const { server, watching } = await open(options, {
    signal: abort.signal,
    onClientCa: () => connections.sayGoodbye(),
  });
  connections.follow(server);
  // Not its requests and responses, which would be two more objects for each call.
  server.on('stream', handler);
  await bound(server, options);
  const sweeping = connections.sweep(abort.signal);
  return {
    port: portOf(server),
    async close() {
      abort.abort();
      await Promise.all([ended(server, connections, clock), watching, sweeping]);
    },
  };
}

interface Opened {
  readonly server: Http2Server | Http2SecureServer;
  readonly watching: Promise<void>;
}

interface Opening {
  readonly signal: AbortSignal;
  /** Clients of another CA than so far are let in now, and maybe those of the former no longer. */
  readonly onClientCa: () => void;
}

async function open(options: ListenerOptions, { signal, onClientCa }: Opening): Promise<Opened> {
  const limits = {
    maxSessionMemory: SESSION_MEMORY_MIB,
    settings: { maxConcurrentStreams: STREAMS_PER_CONNECTION, maxHeaderListSize: 16_384 },
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

/** Connections of the autoscaler stay open for ever; they are told to go, and made to. */
async function ended(
  server: Http2Server | Http2SecureServer,
  connections: Connections,
  clock: Clock,
): Promise<void> {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  connections.sayGoodbye();
  const patience = new AbortController();
  const late = clock.sleep(CLOSE_WITHIN_MS, { signal: patience.signal }).catch(() => undefined);
  await Promise.race([closed, late]);
  patience.abort();
  connections.cut();
  await closed;
}
