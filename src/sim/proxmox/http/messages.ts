// SPDX-License-Identifier: Apache-2.0
// Requests and responses without sockets, for the server and for in-process callers.

export interface SimRequest {
  readonly method: string;
  /** Path and query of the request line. */
  readonly target: string;
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string | undefined;
  /** The host that the client connects to; absent = the first one. */
  readonly host?: string;
  /** Whether an earlier request came over the same connection. */
  readonly isConnectionReused?: boolean;
}

export interface SimResponse {
  readonly status: number;
  /** Reason phrase: the first line of the message. */
  readonly reason: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Connection refused or reset. After a reset, the work may be done. */
export class SimConnectionError extends Error {
  readonly code: 'ECONNREFUSED' | 'ECONNRESET';

  constructor(code: 'ECONNREFUSED' | 'ECONNRESET') {
    super(code);
    this.name = 'SimConnectionError';
    this.code = code;
  }
}

const REASONS: Readonly<Record<number, string>> = {
  200: 'OK',
  401: 'Unauthorized',
  403: 'Forbidden',
  500: 'Internal Server Error',
  501: 'Not Implemented',
};

/** One line without control characters, for the status line. */
export function formatReasonPhrase(status: number, message: string): string {
  const [first = ''] = message.split('\n');
  // oxlint-disable-next-line no-control-regex -- they would end the status line
  const clean = first.replaceAll(/[\u0000-\u001f\u007f]/g, ' ').trim();
  return clean === '' ? (REASONS[status] ?? 'Error') : clean;
}

/** A response without a body: its text is in the reason phrase. */
export function reasonOnlyResponse(status: number, message: string): SimResponse {
  return { status, reason: formatReasonPhrase(status, message), headers: {}, body: '' };
}
