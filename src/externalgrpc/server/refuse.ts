// SPDX-License-Identifier: Apache-2.0
// Responses without a body: headers that are also trailers, then the end of the stream.
import { constants, type ServerHttp2Stream } from 'node:http2';
import { encodeHeaderText, type GrpcError, STATUS } from './status.ts';

export const CONTENT_TYPE = 'application/grpc';

export function refuseGrpc(
  stream: ServerHttp2Stream,
  error: Pick<GrpcError, 'status' | 'message'>,
  headers: Readonly<Record<string, string>> = {},
): void {
  sendAndClose(stream, {
    ':status': 200,
    'content-type': CONTENT_TYPE,
    ...statusTrailers(error),
    ...headers,
  });
}

export function refuseHttp(stream: ServerHttp2Stream, status: number): void {
  sendAndClose(stream, { ':status': status });
}

export function statusTrailers({
  status,
  message,
}: Pick<GrpcError, 'status' | 'message'>): Record<string, string> {
  return { 'grpc-status': String(STATUS[status]), 'grpc-message': encodeHeaderText(message) };
}

/** Does not wait for the rest of the request: it would fill the flow-control window of the connection. */
function sendAndClose(stream: ServerHttp2Stream, headers: Record<string, string | number>): void {
  if (stream.destroyed || stream.closed || stream.headersSent) return;
  stream.respond(headers, { endStream: true });
  stream.close(constants.NGHTTP2_NO_ERROR);
}
