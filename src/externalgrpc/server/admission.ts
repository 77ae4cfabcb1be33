// SPDX-License-Identifier: Apache-2.0
// Which calls are begun at all: only gRPC, only for those on the list, and only so many. A refused client learns why.
import type { Http2Session, ServerHttp2Stream } from 'node:http2';
import { TLSSocket } from 'node:tls';
import { isAllowed, namesOf } from './allow-list.ts';
import type { StreamHandler } from './answer-calls.ts';
import type { Connections } from './connections.ts';
import { refuseGrpc, refuseHttp } from './refuse.ts';

/** Of answers that clients asked for and do not read. */
const UNREAD_MAX_BYTES = 64 * 2 ** 20;

/** They go into a header. */
const NAMES_SHOWN_MAX = 500;

export interface AdmissionOptions {
  /** Undefined: clients show no certificate. */
  readonly allow: readonly string[] | undefined;
  readonly callsAtOnce: number;
  readonly connections: Connections;
}

export function admitted(next: StreamHandler, options: AdmissionOptions): StreamHandler {
  const { allow, connections } = options;
  const handler = limited(next, options.callsAtOnce);
  const guests = new Guests(allow);
  return (stream, headers) => {
    stream.on('error', () => undefined);
    if (headers[':method'] !== 'POST') return refuseHttp(stream, 405);
    if (!isGrpc(headers['content-type'])) return refuseHttp(stream, 415);
    const stranger = guests.refusal(stream);
    if (stranger !== undefined) {
      return refuseGrpc(stream, { status: 'PermissionDenied', message: stranger });
    }
    connections.callBegins(stream);
    const { 'grpc-encoding': encoding = 'identity' } = headers;
    if (encoding === 'identity') return handler(stream, headers);
    // The autoscaler never packs what it sends, and what is packed may be a thousand times as large.
    const message = `requests in grpc-encoding ${JSON.stringify(encoding)} are not read`;
    const accepted = { 'grpc-accept-encoding': 'identity' };
    refuseGrpc(stream, { status: 'Unimplemented', message }, accepted);
  };
}

/** Who a connection is from is looked at once: its certificate stays the same. */
class Guests {
  readonly #allow: readonly string[] | undefined;
  readonly #refusals = new WeakMap<Http2Session, string | undefined>();

  constructor(allow: readonly string[] | undefined) {
    this.#allow = allow;
  }

  /** In words, if so. */
  refusal({ session }: ServerHttp2Stream): string | undefined {
    if (this.#allow === undefined) return undefined;
    if (session === undefined) return 'the connection has ended';
    if (!this.#refusals.has(session)) this.#refusals.set(session, judge(session, this.#allow));
    return this.#refusals.get(session);
  }
}

function judge({ socket }: Http2Session, allow: readonly string[]): string | undefined {
  const names = socket instanceof TLSSocket ? namesOf(socket.getPeerCertificate()) : [];
  if (isAllowed(names, allow)) return undefined;
  const said = JSON.stringify(names.map(({ text }) => text)).slice(0, NAMES_SHOWN_MAX);
  return `client certificate of ${said} is not on the list`;
}

function limited(handler: StreamHandler, callsAtOnce: number): StreamHandler {
  const calls = new Set<ServerHttp2Stream>();
  return (stream, headers) => {
    const problem = tooMuch(calls, callsAtOnce);
    if (problem !== undefined) {
      return refuseGrpc(stream, { status: 'ResourceExhausted', message: problem });
    }
    calls.add(stream);
    stream.once('close', () => calls.delete(stream));
    handler(stream, headers);
  };
}

function tooMuch(calls: ReadonlySet<ServerHttp2Stream>, callsAtOnce: number): string | undefined {
  if (calls.size >= callsAtOnce) return `${callsAtOnce} calls are under way`;
  let unread = 0;
  for (const { writableLength } of calls) unread += writableLength;
  return unread > UNREAD_MAX_BYTES ? `answers of ${unread} bytes are not read yet` : undefined;
}

function isGrpc(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/grpc(\+proto)?(;|$)/.test(contentType);
}
