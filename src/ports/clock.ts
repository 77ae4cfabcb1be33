// SPDX-License-Identifier: Apache-2.0

/**
 * The only source of time, so that tests run on virtual time. There are two clocks, because a wall clock may be set back
 * and a monotonic clock means nothing after a restart.
 */
export interface Clock {
  /** Wall clock in milliseconds since 1970, for times that are stored or compared across processes. */
  now(): number;
  /** Milliseconds that never decrease, for durations and deadlines inside one process. */
  monotonic(): number;
  /**
   * Resolves after `ms`, immediately for zero or less. An abort rejects with Cancelled and frees the timer; an already
   * aborted signal rejects immediately.
   */
  sleep(ms: number, options?: { readonly signal?: AbortSignal | undefined }): Promise<void>;
}
