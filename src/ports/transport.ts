// SPDX-License-Identifier: Apache-2.0

/** A body of known length: Proxmox refuses chunked bodies with 501. */
export interface SizedBody {
  readonly byteLength: number;
  /** Yields exactly `byteLength` bytes. Called once per attempt, so that a failed attempt can be retried. */
  open(): AsyncIterable<Uint8Array>;
}

export interface TransportRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Absolute URL, query included. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | SizedBody;
  /** Limit for the whole exchange: connection, request body, response headers and response body. */
  readonly timeoutMs: number;
  /** For a watch: the limit ends with the response headers, and the caller limits the body with the signal. */
  readonly streamsResponse?: boolean;
  readonly signal?: AbortSignal | undefined;
  /**
   * Asked whenever something is about to be written: when the connection is there, which may be much later than the
   * call, and before each part of a sized body. False: nothing more is sent, and the request rejects with Cancelled.
   */
  readonly maySend?: () => boolean;
}

export interface TransportResponse {
  readonly status: number;
  /** The reason phrase: before Proxmox 8.4 the only place that contains the error message. */
  readonly reason: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Can be read once. Leaving the loop early, or aborting the signal, closes the connection. */
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * One HTTP exchange without retries or redirects. Resolves with any status.
 *
 * Rejects with Unreachable (refused, reset, name not found), TimedOut, Unauthorized/TLS_NOT_TRUSTED, or
 * Cancelled; the body rejects in the same ways. TimedOut and Cancelled say in `facts.progress` how far the exchange was.
 * `facts.requestSent` is false only when the peer certainly received nothing: then even a request that is not
 * idempotent may be sent again. In every other case the peer may have acted.
 */
export interface Transport {
  request(request: TransportRequest): Promise<TransportResponse>;
  /** Closes idle connections. Requests in progress continue until their signals abort. */
  close(): Promise<void>;
}
