// SPDX-License-Identifier: Apache-2.0

/** A body whose length is known before it is sent: Proxmox answers 501 to a chunked one. */
export interface SizedBody {
  readonly byteLength: number;
  /** Yields exactly `byteLength` bytes. Called once per attempt, so that a failed attempt can be repeated. */
  open(): AsyncIterable<Uint8Array>;
}

export interface TransportRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Absolute URL, query included. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | SizedBody;
  /** Until the answer's head has arrived. The body may stream for as long as the signal allows (a watch does). */
  readonly headTimeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface TransportResponse {
  readonly status: number;
  /** The reason phrase: before Proxmox 8.4 the only place where an error's text stands. */
  readonly reason: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** To be read once. Leaving the loop early, or aborting the signal, closes the connection. */
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * One HTTP exchange, no retry, no redirect followed, no meaning given to the status: any status is an answer.
 *
 * Rejects with Unreachable (refused, reset, name not found), TimedOut, Unauthorized/TLS_NOT_TRUSTED, or
 * Cancelled. `facts.requestSent` is false only when the peer certainly received nothing: then even a call
 * that is not idempotent may be repeated elsewhere. In every other case the peer may have acted.
 */
export interface Transport {
  request(request: TransportRequest): Promise<TransportResponse>;
  /** Ends idle connections. Requests under way are left to their signals. */
  close(): Promise<void>;
}
