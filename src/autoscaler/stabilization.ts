// SPDX-License-Identifier: Apache-2.0
// Waits until the set of pending pods has stopped growing, so that one decision sees all pods of a rollout.
import type { Pod } from '../model/pod.ts';

/** A constant stream of new pods postpones a decision for so many windows at most. */
const MAX_WINDOWS = 3;

export class Stabilization {
  /** How long the set must not have grown. */
  windowMs: number;
  #known = new Set<string>();
  /** Wall clock of the first and the last new pod since the last decision. */
  #arrivals: { readonly first: number; readonly last: number } | undefined;

  constructor(windowMs: number) {
    this.windowMs = windowMs;
  }

  observe(pending: readonly Pod[], now: number): void {
    const isNew = pending.some(({ uid }) => !this.#known.has(uid));
    this.#known = new Set(pending.map(({ uid }) => uid));
    if (isNew) this.#arrivals = { first: this.#arrivals?.first ?? now, last: now };
    else if (pending.length === 0) this.#arrivals = undefined;
  }

  /** When the new pods may be decided about; undefined: there are none. */
  get dueAt(): number | undefined {
    if (this.#arrivals === undefined) return undefined;
    const { first, last } = this.#arrivals;
    return Math.min(last + this.windowMs, first + MAX_WINDOWS * this.windowMs);
  }

  /** The pods that are pending now have been decided about. */
  markDecided(): void {
    this.#arrivals = undefined;
  }
}
