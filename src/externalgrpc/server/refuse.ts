// SPDX-License-Identifier: Apache-2.0
// Answers without a call: headers that are trailers, and an end.
import { constants, type ServerHttp2Stream } from 'node:http2';
import { type GrpcError, headerText, STATUS } from './status.ts';

export const CONTENT_TYPE = 'application/grpc';

export function refuseGrpc(
  stream: ServerHttp2Stream,
  error: Pick<GrpcError, 'status' | 'message'>,
  headers: Readonly<Record<string, string>> = {},
): void {
  answer(stream, {
    ':status': 200,
    'content-type': CONTENT_TYPE,
    ...statusTrailers(error),
    ...headers,
  });
}

export function refuseHttp(stream: ServerHttp2Stream, status: number): void {
  answer(stream, { ':status': status });
}

export function statusTrailers({
  status,
  message,
}: Pick<GrpcError, 'status' | 'message'>): Record<string, string> {
  return { 'grpc-status': String(STATUS[status]), 'grpc-message': headerText(message) };
}

/** The rest of the request is not waited for: it would fill the window that all calls of the connection share. */
function answer(stream: ServerHttp2Stream, headers: Record<string, string | number>): void {
  if (stream.destroyed || stream.closed || stream.headersSent) return;
  stream.respond(headers, { endStream: true });
  stream.close(constants.NGHTTP2_NO_ERROR);
}
