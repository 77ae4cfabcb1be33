// SPDX-License-Identifier: Apache-2.0
import type { Lease } from '../model/lease.ts';
import type { Fence } from '../ports/fence.ts';

/** The right to act, for as long as it lasts. */
export interface Leadership extends Fence {
  readonly lease: Lease;
  readonly signal?: AbortSignal | undefined;
  /** How old a view may be to be used once more; absent = none is. */
  readonly viewAgeMs?: number;
}

/** Whoever drives in this process right now. Nobody: then nothing may be changed. */
export class Throne implements Fence {
  #holder: Fence | undefined;

  mayAct(): boolean {
    return this.#holder?.mayAct() ?? false;
  }

  take(holder: Fence): void {
    this.#holder = holder;
  }

  leave(holder: Fence): void {
    if (this.#holder === holder) this.#holder = undefined;
  }
}
