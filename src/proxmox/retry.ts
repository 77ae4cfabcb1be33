// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import { Cancelled, PvescalerError, TimedOut, Unreachable } from '../ports/errors.ts';
import type { Random } from '../ports/random.ts';

export interface RetryOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly signal?: AbortSignal | undefined;
  /** Includes the first attempt. */
  readonly maxAttempts: number;
  readonly initialBackoffMs: number;
  readonly maxBackoffMs: number;
  isTransient(error: unknown): boolean;
}

/**
 * Retries transient errors. The backoff doubles each time, with jitter over its upper half: callers that failed together
 * retry at different times, and none retries immediately.
 */
export async function retryWithBackoff<T>(
  work: () => Promise<T>,
  options: RetryOptions,
): Promise<T> {
  let backoffMs = options.initialBackoffMs;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= options.maxAttempts || !options.isTransient(error)) throw error;
    }
    await options.clock.sleep((backoffMs * (1 + options.random.fraction())) / 2, {
      signal: options.signal,
    });
    backoffMs = Math.min(backoffMs * 2, options.maxBackoffMs);
  }
}

/**
 * For work that precedes a request: the login, reading the version, finding the VM's host. If it fails, the request itself
 * was not sent, so the error gets `requestSent: false`.
 */
export async function rejectAsNotSent<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof PvescalerError ? asNotSent(error) : error;
  }
}

function asNotSent(error: PvescalerError): PvescalerError {
  const { hint } = error;
  const details = { hint, cause: error, facts: { ...error.facts, requestSent: false } };
  if (error.class === 'TimedOut') return new TimedOut('REQUEST_TIMED_OUT', error.message, details);
  if (error.code === 'PVE_HOST_UNREACHABLE') {
    return new Unreachable('PVE_HOST_UNREACHABLE', error.message, details);
  }
  if (error.code !== 'PVE_UNREACHABLE') return error;
  return new Unreachable('PVE_UNREACHABLE', error.message, details);
}

/** For work shared by several callers: an abort rejects only the caller's own promise, the work continues. */
export function rejectOnAbort<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const onAbort = () =>
      reject(
        new Cancelled('CANCELLED', 'the caller aborted the call', {
          facts: { requestSent: false },
        }),
      );
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
