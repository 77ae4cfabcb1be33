// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';

interface RenewalOptions {
  readonly clock: Clock;
  readonly intervalMs: number;
  /** Ends the renewals. */
  readonly signal: AbortSignal;
  readonly renew: () => Promise<void>;
  /** Whether the error of a renewal means that the lease is lost; otherwise the next renewal is a retry. */
  readonly isLost: (error: unknown) => boolean;
}

/** Renews a lease until the signal, or until it is lost. */
export async function keepRenewing(options: RenewalOptions): Promise<'ended' | 'lost'> {
  const { clock, intervalMs, signal, renew, isLost } = options;
  for (;;) {
    await clock.sleep(intervalMs, { signal }).catch(() => undefined);
    if (signal.aborted) return 'ended';
    try {
      await renew();
    } catch (error) {
      if (isLost(error)) return 'lost';
    }
  }
}
