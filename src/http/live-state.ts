// SPDX-License-Identifier: Apache-2.0
// The changes of the state for any number of pages: read once per interval while a page is connected, and sent as the
// parts that differ. Machines change one by one; of a thousand of them only those that changed are sent.
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../ports/clock.ts';
import type { DashboardState, StateChange } from './dashboard-contract.ts';

/** Undefined when only the time differs. */
export function findChange(before: DashboardState, after: DashboardState): StateChange | undefined {
  const { machines: oldMachines, ...oldParts } = before;
  const { machines: newMachines, ...newParts } = after;
  const old = new Map(oldMachines.map((machine) => [machine.id, machine]));
  const current = new Set(newMachines.map(({ id }) => id));
  const machines = newMachines.filter((one) => !isDeepStrictEqual(old.get(one.id), one));
  const removedMachines = oldMachines.flatMap(({ id }) => (current.has(id) ? [] : [id]));
  const oldValues = new Map<string, unknown>(Object.entries(oldParts));
  const parts = Object.entries(newParts).filter(
    ([name, value]) => name !== 'at' && !isDeepStrictEqual(oldValues.get(name), value),
  );
  // A part that has become undefined must be sent too.
  const gone = Object.keys(oldParts).filter((name) => !(name in newParts));
  if (parts.length + machines.length + removedMachines.length + gone.length === 0) return undefined;
  const changed = {
    at: after.at,
    ...Object.fromEntries(gone.map((name) => [name, null])),
    ...Object.fromEntries(parts),
  };
  return { changed, machines, removedMachines };
}

interface LiveStateOptions {
  readonly read: () => Promise<DashboardState>;
  readonly clock: Clock;
  readonly intervalMs: number;
}

type Listener = (change: StateChange) => void;

export class LiveState {
  readonly #options: LiveStateOptions;
  readonly #listeners = new Set<Listener>();
  #last: DashboardState | undefined;
  #stop: AbortController | undefined;

  constructor(options: LiveStateOptions) {
    this.#options = options;
  }

  /** The state that the next changes are relative to. */
  async subscribe(listener: Listener): Promise<DashboardState> {
    const read = this.#last ?? (await this.#options.read());
    // The changes are relative to the state of a page that has connected meanwhile.
    this.#last ??= read;
    this.#listeners.add(listener);
    if (this.#stop === undefined) {
      this.#stop = new AbortController();
      void this.#run(this.#stop.signal);
    }
    return this.#last;
  }

  unsubscribe(listener: Listener): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size > 0) return;
    this.#stop?.abort();
    this.#stop = undefined;
    this.#last = undefined;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, intervalMs, read } = this.#options;
    while (!signal.aborted) {
      try {
        await clock.sleep(intervalMs, { signal });
        const next = await read();
        if (signal.aborted || this.#last === undefined) return;
        const change = findChange(this.#last, next);
        this.#last = next;
        if (change !== undefined) for (const listener of this.#listeners) listener(change);
      } catch {
        // A reading that failed is repeated; the health endpoints report the cause.
      }
    }
  }
}
