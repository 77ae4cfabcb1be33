// SPDX-License-Identifier: Apache-2.0
// HTTP/2 clients without a gRPC library: calls in any form, and single frames.
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
  // The limit also counts data that is written and not sent yet.
  const session = connect(url, { maxSessionMemory: 2_000, ...options });
  session.on('error', () => undefined);
  return session;
}

/** Sends the headers of a call; the caller sends the body. */
export function openCall(
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

export interface CallStatus {
  readonly code: string;
  readonly message: string;
  readonly headers: IncomingHttpHeaders;
}

/** The status of a call after it ends; code `none` without a gRPC status. */
export async function readStatus(call: ClientHttp2Stream): Promise<CallStatus> {
  const headers: IncomingHttpHeaders = {};
  call.on('response', (received) => Object.assign(headers, received));
  call.on('trailers', (received) => Object.assign(headers, received));
  call.resume();
  await waitForClose(call);
  return {
    code: [headers['grpc-status'] ?? 'none'].flat().join(),
    message: decodeURIComponent([headers['grpc-message'] ?? ''].flat().join()),
    headers,
  };
}

export function waitForClose(call: ClientHttp2Stream): Promise<void> {
  return new Promise((resolve) => {
    if (call.destroyed) resolve();
    else call.once('close', resolve);
  });
}

/** Adds the header of a gRPC message. */
export function frameMessage(message: Uint8Array, flags = 0): Buffer {
  const header = Buffer.alloc(5);
  header.writeUInt8(flags, 0);
  header.writeUInt32BE(message.length, 1);
  return Buffer.concat([header, message]);
}

export function callUnary(
  session: ClientHttp2Session,
  path: string,
  message: Uint8Array = new Uint8Array(),
): Promise<CallStatus> {
  const call = openCall(session, path);
  call.end(frameMessage(message));
  return readStatus(call);
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

export function http2Frame(
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
  http2Frame(FRAME.settings),
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

  /** Resolves when the server has closed the connection. */
  async waitForClose(): Promise<void> {
    await this.#closed;
  }

  /** Types of the frames received so far. */
  frameTypes(): readonly number[] {
    const all = Buffer.concat(this.#received);
    const types: number[] = [];
    for (let at = 0; at + 9 <= all.length; at += 9 + all.readUIntBE(at, 3))
      types.push(all.readUInt8(at + 3));
    return types;
  }
}

/** Headers without compression. */
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
