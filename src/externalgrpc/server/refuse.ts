// SPDX-License-Identifier: Apache-2.0
// Answers without a call: headers that are trailers, and an end.
import { constants, type ServerHttp2Stream } from 'node:http2';

export const STATUS = {
  invalidArgument: '3',
  permissionDenied: '7',
  resourceExhausted: '8',
  unimplemented: '12',
  internal: '13',
} as const;

interface Words {
  readonly status: (typeof STATUS)[keyof typeof STATUS];
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export function refuseGrpc(
  stream: ServerHttp2Stream,
  { status, message, headers = {} }: Words,
): void {
  answer(stream, {
    ':status': 200,
    'content-type': 'application/grpc',
    'grpc-status': status,
    'grpc-message': encodeURIComponent(message.toWellFormed()).replaceAll('%20', ' '),
    ...headers,
  });
}

export function refuseHttp(stream: ServerHttp2Stream, status: number): void {
  answer(stream, { ':status': status });
}

/** The rest of the request is not waited for: it would fill the window that all calls of the connection share. */
function answer(stream: ServerHttp2Stream, headers: Record<string, string | number>): void {
  if (stream.destroyed || stream.closed || stream.headersSent) return;
  stream.respond(headers, { endStream: true });
  stream.close(constants.NGHTTP2_NO_ERROR);
}
