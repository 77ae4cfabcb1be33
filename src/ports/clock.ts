// SPDX-License-Identifier: Apache-2.0

/**
 * Time. Everything that waits, measures or stamps does it here, so that tests and the soak run on virtual
 * time. Two readings, because a wall clock may be set back and a monotonic one means nothing after a restart.
 */
export interface Clock {
  /** Wall clock in milliseconds since 1970, for stamps that are written down or compared across processes. */
  now(): number;
  /** Milliseconds that only grow, for measuring and for deadlines inside one process. */
  monotonic(): number;
  /**
   * Resolves after `ms` (at once for zero or less). Aborting rejects with Cancelled and frees the timer;
   * a signal already aborted rejects without waiting.
   */
  sleep(ms: number, options?: { readonly signal?: AbortSignal | undefined }): Promise<void>;
}
