// SPDX-License-Identifier: Apache-2.0
// Decides which calls are admitted: gRPC only, allowed clients only, within the load limits. A refusal states its reason.
import type { Http2Session, ServerHttp2Stream } from 'node:http2';
import { TLSSocket } from 'node:tls';
import { isAllowed, readCertificateNames } from './allow-list.ts';
import type { Connections } from './connections.ts';
import type { StreamHandler } from './dispatch.ts';
import { refuseGrpc, refuseHttp } from './refuse.ts';

/** Responses that clients requested and have not read. */
const MAX_UNREAD_BYTES = 64 * 2 ** 20;

/** The names are sent in a header. */
const MAX_NAMES_LENGTH = 500;

export interface AdmissionOptions {
  /** Undefined: clients need no certificate. */
  readonly allow: readonly string[] | undefined;
  readonly maxConcurrentCalls: number;
  readonly connections: Connections;
}

export function admitCalls(next: StreamHandler, options: AdmissionOptions): StreamHandler {
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
