// SPDX-License-Identifier: Apache-2.0
// What is given away of each host by configuration. Momentary use decides nothing: an idle VM may wake up.
import type { RegionFacts } from './facts.ts';
import { HostLedger } from './host-ledger.ts';
import type { PlacementRequest } from './request.ts';

export interface HostEntry {
  readonly cpus: number;
  readonly memoryBytes: number;
  /** VMs of anybody, stopped ones too, templates not. */
  readonly vms: number;
  /** Machines of the pool that asks. */
  readonly poolMachines: number;
}

export class HostBooks {
  readonly #request: PlacementRequest;
  readonly #ledger: NonNullable<RegionFacts['ledger']>;
  readonly #entries = new Map<string, HostEntry>();

  constructor(request: PlacementRequest, facts: RegionFacts) {
    this.#request = request;
    this.#ledger = facts.ledger ?? ledgerOf(facts);
  }

  entry(host: string): HostEntry {
    const entry = this.#entries.get(host) ?? this.#fromLedger(host);
    this.#entries.set(host, entry);
    return entry;
  }

  /** As if one more machine of the request stood there. */
  book(host: string): void {
    const { cpu, memoryBytes } = this.#request.size;
    const known = this.entry(host);
    this.#entries.set(host, {
      cpus: known.cpus + cpu,
      memoryBytes: known.memoryBytes + memoryBytes,
      vms: known.vms + 1,
      poolMachines: known.poolMachines + 1,
    });
  }

  #fromLedger(host: string): HostEntry {
    const tally = this.#ledger.tally(host);
    if (tally === undefined) return { cpus: 0, memoryBytes: 0, vms: 0, poolMachines: 0 };
    const isLess = this.#request.countsStopped === false;
    return {
      cpus: tally.cpus - (isLess ? tally.stoppedCpus : 0),
      memoryBytes: tally.memoryBytes - (isLess ? tally.stoppedMemoryBytes : 0),
      vms: tally.vms,
      poolMachines: tally.pools.get(this.#request.pool) ?? 0,
    };
  }
}

function ledgerOf({ vms, reservations }: RegionFacts): HostLedger {
  const ledger = new HostLedger();
  for (const [index, one] of reservations.entries()) ledger.reserve(String(index), one);
  ledger.look(vms);
  return ledger;
}
