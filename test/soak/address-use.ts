// SPDX-License-Identifier: Apache-2.0
// Who had which static address, and when: no machine gets an address that a VM of another one had a short time ago.
import type { Machine } from '../../src/model/machine.ts';

const COOL_DOWN_MS = 30 * 60_000;

/** Of the wall clock, which may be set forward while no process measures the time, and of one that is never set. */
interface Instant {
  readonly wall: number;
  readonly monotonic: number;
}

interface LastUse {
  readonly machine: string;
  at: Instant;
}

interface RunningVm {
  readonly region: string;
  readonly marker: { readonly machine: string; readonly addresses: readonly string[] };
}

export class AddressUse {
  readonly #last = new Map<string, LastUse>();
  /** Machine and address. */
  readonly #assigned = new Set<string>();

  /** Older records may not know who had an address. */
  forget(): void {
    this.#last.clear();
  }

  /** `stillUses`: machines whose VM a person has taken over. */
  advance(now: Instant, stillUses: ReadonlySet<string>): void {
    for (const last of this.#last.values()) {
      const { wall, monotonic } = last.at;
      // After the wall clock was set back, its cool-down counts from then.
      last.at = stillUses.has(last.machine) ? now : { wall: Math.min(wall, now.wall), monotonic };
    }
  }

  /** Addresses that the machine got too soon. */
  assign({ id, placement }: Machine, now: Instant): readonly string[] {
    const keys = (placement?.addresses ?? []).map((address) => `${placement?.region} ${address}`);
    const isNew = (key: string) => !this.#assigned.has(`${id} ${key}`);
    const early = keys.filter((key) => isNew(key) && this.#wasUsedByOther(key, id, now));
    for (const key of keys) this.#assigned.add(`${id} ${key}`);
    return early;
  }

  use({ region, marker: { machine, addresses } }: RunningVm, at: Instant): void {
    for (const address of addresses) this.#last.set(`${region} ${address}`, { machine, at });
  }

  /** Less than the cool-down ago by both clocks. */
  #wasUsedByOther(key: string, machine: string, now: Instant): boolean {
    const last = this.#last.get(key);
    if (last === undefined || last.machine === machine) return false;
    const { wall, monotonic } = last.at;
    return Math.max(now.wall - wall, now.monotonic - monotonic) < COOL_DOWN_MS;
  }
}
