// SPDX-License-Identifier: Apache-2.0
import type { Clock } from './clock.ts';
import type { PvescalerError } from './errors.ts';
import type { Random } from './random.ts';

interface BackoffOptions {
  readonly clock: Clock;
  readonly random: Pick<Random, 'fraction'>;
  readonly firstMs: number;
  readonly maxMs: number;
}

/**
 * Exponential back-off with jitter. Each delay is drawn from the upper half of a limit that doubles from `firstMs` to
 * `maxMs`, so that clients that failed together do not retry together.
 */
export class Backoff {
  readonly #options: BackoffOptions;
  #limitMs: number;

  constructor(options: BackoffOptions) {
    this.#options = options;
    this.#limitMs = options.firstMs;
  }

  /** Rejects with Cancelled when the signal aborts. */
  async sleep(signal?: AbortSignal): Promise<void> {
    const { clock, random, maxMs } = this.#options;
    const delayMs = (this.#limitMs * (1 + random.fraction())) / 2;
    this.#limitMs = Math.min(this.#limitMs * 2, maxMs);
    await clock.sleep(delayMs, { signal });
  }

  /** Starts again from `firstMs`; call it after a success. */
  reset(): void {
    this.#limitMs = this.#options.firstMs;
  }
}

const REFUSAL_BACKOFF_MS = 2_000;
const MAX_REFUSAL_BACKOFF_MS = 60_000;

/** Pause after so many reads that the server refused: they fail until an operator acts. Servers ban clients that repeat them. */
export function refusalBackoffMs(refusals: number): number {
  return Math.min(REFUSAL_BACKOFF_MS * 2 ** (refusals - 1), MAX_REFUSAL_BACKOFF_MS);
}

export function isRefusal(error: PvescalerError | undefined): boolean {
  return error?.code === 'CREDENTIALS_REFUSED' || error?.code === 'TLS_NOT_TRUSTED';
}
