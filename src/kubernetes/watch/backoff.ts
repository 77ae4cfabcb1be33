// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';
import type { Random } from '../../ports/random.ts';

const FIRST_MS = 800;
const LONGEST_MS = 30_000;

/**
 * Longer pauses from one failure to the next, each drawn from its upper half: clients that an API server lost
 * together do not come back together.
 */
export class Backoff {
  readonly #clock: Clock;
  readonly #random: Random;
  #nextMs = FIRST_MS;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  succeeded(): void {
    this.#nextMs = FIRST_MS;
  }

  async pause(signal: AbortSignal): Promise<void> {
    const ms = (this.#nextMs * (1 + this.#random.fraction())) / 2;
    this.#nextMs = Math.min(this.#nextMs * 2, LONGEST_MS);
    await this.#clock.sleep(ms, { signal });
  }
}
