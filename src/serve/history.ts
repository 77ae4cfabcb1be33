// SPDX-License-Identifier: Apache-2.0
// What the dashboard plots: samples of this process, the fewer the older they are, and what the machines of each pool have cost today.

export interface Sample {
  readonly at: number;
  readonly pending: number;
  readonly nodes: number;
  /** Cores. */
  readonly requestedCpu: number;
  readonly allocatableCpu: number;
  /** Bytes. */
  readonly requestedMemory: number;
  readonly allocatableMemory: number;
}

const DAY_MS = 24 * 60 * 60_000;
/** Of samples up to this age one per slot is kept; the oldest are a day old. */
const TIERS = [
  { ageMs: 5 * 60_000, slotMs: 1 },
  { ageMs: 30 * 60_000, slotMs: 20_000 },
  { ageMs: DAY_MS, slotMs: 5 * 60_000 },
];
/** A longer gap was not observed: the process was suspended. */
const MAX_GAP_MS = 60_000;

export class History {
  #samples: readonly Sample[] = [];
  #cost = new Map<string, number>();
  #day = 0;
  #costAt: number | undefined;

  get samples(): readonly Sample[] {
    return this.#samples;
  }

  add(sample: Sample): void {
    const { at } = sample;
    let last = -1;
    const kept = this.#samples.filter((one) => {
      const tier = TIERS.find(({ ageMs }) => one.at >= at - ageMs);
      // Samples of a clock that was ahead would never be removed.
      if (one.at >= at || tier === undefined) return false;
      const slot = Math.floor(one.at / tier.slotMs);
      if (slot === last) return false;
      last = slot;
      return true;
    });
    this.#samples = [...kept, sample];
  }

  /** Counts the time since the last call at these prices per hour. */
  addCost(prices: ReadonlyMap<string, number>, at: number): void {
    const day = Math.floor(at / DAY_MS);
    if (day !== this.#day) this.#cost = new Map();
    this.#day = day;
    const elapsedMs = this.#costAt === undefined ? 0 : at - this.#costAt;
    this.#costAt = at;
    if (elapsedMs <= 0 || elapsedMs > MAX_GAP_MS) return;
    for (const [pool, price] of prices) {
      this.#cost.set(pool, (this.#cost.get(pool) ?? 0) + (price * elapsedMs) / 3_600_000);
    }
  }

  costToday(pool: string): number {
    return this.#cost.get(pool) ?? 0;
  }
}
