// SPDX-License-Identifier: Apache-2.0
// Peers that speak HTTP/2 without a gRPC client in between: calls in any form, and frames byte by byte.
import { once } from 'node:events';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
} from 'node:http2';
import { connect as connectTcp, type Socket } from 'node:net';

const PROVIDER = '/clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/';

export function rpcPath(rpc: string): string {
  return `${PROVIDER}${rpc}`;
}

export function openSession(
  url: string,
  options: Parameters<typeof connect>[1] = {},
): ClientHttp2Session {
  // What is written and not sent yet counts as well.
  const session = connect(url, { maxSessionMemory: 2_000, ...options });
  session.on('error', () => undefined);
  return session;
}

/** Headers of a call; the body is the caller's to send. */
export function begin(
  session: ClientHttp2Session,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): ClientHttp2Stream {
  const call = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
  call.on('error', () => undefined);
  return call;
}

export interface Status {
  readonly code: string;
  readonly message: string;
  readonly headers: IncomingHttpHeaders;
}

/** What the call ends with; code `none` if it ends without a status. */
export async function statusOf(call: ClientHttp2Stream): Promise<Status> {
  const headers: IncomingHttpHeaders = {};
  call.on('response', (some) => Object.assign(headers, some));
  call.on('trailers', (some) => Object.assign(headers, some));
  call.resume();
  await closeOf(call);
  return {
    code: [headers['grpc-status'] ?? 'none'].flat().join(),
    message: decodeURIComponent([headers['grpc-message'] ?? ''].flat().join()),
    headers,
  };
}

export function closeOf(call: ClientHttp2Stream): Promise<void> {
  return new Promise((resolve) => {
    if (call.destroyed) resolve();
    else call.once('close', resolve);
  });
}

/** With the header of a gRPC message. */
export function framed(message: Uint8Array, flags = 0): Buffer {
  const header = Buffer.alloc(5);
  header.writeUInt8(flags, 0);
  header.writeUInt32BE(message.length, 1);
  return Buffer.concat([header, message]);
}

export function unary(
  session: ClientHttp2Session,
  path: string,
  message: Uint8Array = new Uint8Array(),
): Promise<Status> {
  const call = begin(session, path);
  call.end(framed(message));
  return statusOf(call);
}

export const FRAME = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  continuation: 9,
} as const;

export function frame(
  type: number,
  {
    flags = 0,
    stream = 0,
    payload = Buffer.alloc(0),
  }: { flags?: number; stream?: number; payload?: Buffer } = {},
): Buffer {
  const header = Buffer.alloc(9);
  header.writeUIntBE(payload.length, 0, 3);
  header.writeUInt8(type, 3);
  header.writeUInt8(flags, 4);
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, payload]);
}

export const PREFACE = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  frame(FRAME.settings),
]);

export class RawPeer {
  readonly socket: Socket;
  readonly #received: Buffer[] = [];
  readonly #closed: Promise<unknown>;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => this.#received.push(chunk));
    this.#closed = new Promise((resolve) => socket.once('close', resolve));
  }

  static async open(port: number): Promise<RawPeer> {
    const socket = connectTcp(port, '127.0.0.1');
    const peer = new RawPeer(socket);
    await once(socket, 'connect');
    return peer;
  }

  get isClosed(): boolean {
    return this.socket.closed;
  }

  send(...frames: readonly Buffer[]): void {
    this.socket.write(Buffer.concat(frames));
  }

  /** Until the server has ended the connection. */
  async closed(): Promise<void> {
    await this.#closed;
  }

  /** Types of the frames that came so far. */
  types(): readonly number[] {
    const all = Buffer.concat(this.#received);
    const types: number[] = [];
    for (let at = 0; at + 9 <= all.length; at += 9 + all.readUIntBE(at, 3))
      types.push(all.readUInt8(at + 3));
    return types;
  }
}

/** A request without compression of its headers. */
export function headerBlock(headers: Readonly<Record<string, string>>): Buffer {
  const text = (value: string) => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
  return Buffer.concat(
    Object.entries(headers).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]),
  );
}

export const CALL_HEADERS = {
  ':method': 'POST',
  ':scheme': 'http',
  ':authority': 'test',
  ':path': rpcPath('NodeGroups'),
  'content-type': 'application/grpc',
};
