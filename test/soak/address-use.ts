// SPDX-License-Identifier: Apache-2.0
// Who had which static address, and when: no machine gets an address that a VM of another one had a short time ago.
import type { Machine } from '../../src/model/machine.ts';

const COOL_DOWN_MS = 30 * 60_000;

interface LastUse {
  readonly machine: string;
  at: number;
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
  advance(now: number, stillUses: ReadonlySet<string>): void {
    for (const last of this.#last.values()) {
      // After the clock was set back, the cool-down counts from then.
      last.at = stillUses.has(last.machine) ? now : Math.min(last.at, now);
    }
  }

  /** Addresses that the machine got too soon. */
  assign({ id, placement }: Machine, now: number): readonly string[] {
    const keys = (placement?.addresses ?? []).map((address) => `${placement?.region} ${address}`);
    const isNew = (key: string) => !this.#assigned.has(`${id} ${key}`);
    const early = keys.filter((key) => isNew(key) && this.#wasUsedByOther(key, id, now));
    for (const key of keys) this.#assigned.add(`${id} ${key}`);
    return early;
  }

  use({ region, marker: { machine, addresses } }: RunningVm, at: number): void {
    for (const address of addresses) this.#last.set(`${region} ${address}`, { machine, at });
  }

  #wasUsedByOther(key: string, machine: string, now: number): boolean {
    const last = this.#last.get(key);
    return last !== undefined && last.machine !== machine && now - last.at < COOL_DOWN_MS;
  }
}
