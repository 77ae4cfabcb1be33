// SPDX-License-Identifier: Apache-2.0
// What the machines that wait for a place will use: they were accepted before any request that needs headroom now.
// Each is assigned to a host as if no host were busy; nothing is written.
import type { AddressLease } from '../../model/address-lease.ts';
import type { Machine } from '../../model/machine.ts';
import {
  chooseHost,
  HostAllocations,
  type Placed,
  type RegionFacts,
  type Reservation,
} from '../../placement/index.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { addressesBeside } from './addresses.ts';
import { backoffOf } from './backoff.ts';
import { placementFacts } from './facts.ts';
import { placementRequest, sourceOf } from './place.ts';

interface Held {
  readonly ledger: HostAllocations;
  readonly reservations: Reservation[];
  readonly addresses: AddressLease[];
}

export class WaitingMachines {
  readonly #context: ReconcileContext;
  readonly #held = new Map<string, Held>();
  readonly #waiting = new Map<string, Set<string>>();

  /** Free VM ids by region. */
  readonly #ids: ReadonlyMap<string, number>;

  private constructor(context: ReconcileContext, ids: ReadonlyMap<string, number>) {
    this.#context = context;
    this.#ids = ids;
  }

  static async of(
    context: ReconcileContext,
    ids: ReadonlyMap<string, number>,
  ): Promise<WaitingMachines> {
    const queue = new WaitingMachines(context, ids);
    const waiting = context.records.index
      .inPhase('requested')
      .filter(
        ({ id, pool }) =>
          !context.records.isDeletionRequested(id) && backoffOf(context, pool) === undefined,
      )
      .toSorted((a, b) => a.requestedAt - b.requestedAt || (a.id < b.id ? -1 : 1));
    for (const machine of waiting) {
      await queue.#hold(machine);
      await context.yieldToEventLoop();
    }
    return queue;
  }

  /** Waiting machines of the pool that will find a place. */
  waitingOf(pool: string): ReadonlySet<string> {
    return this.#waiting.get(pool) ?? new Set();
  }

  /** VM ids that no waiting machine will use. */
  freeIds(region: string): number {
    return (this.#ids.get(region) ?? 0) - (this.#held.get(region)?.reservations.length ?? 0);
  }

  addresses(region: string): readonly AddressLease[] {
    return this.#held.get(region)?.addresses ?? [];
  }

  /** The region after all waiting machines have been placed. */
  facts(view: RegionView): RegionFacts {
    const facts = placementFacts(this.#context, { view, busyHosts: [] });
    const held = this.#held.get(view.region);
    return held === undefined ? facts : together(facts, held);
  }

  async #hold(machine: Machine): Promise<void> {
    const pool = this.#context.pool(machine.pool);
    for (const name of pool?.regions ?? []) {
      const view = this.#context.views.get(name);
      if (pool === undefined || view === undefined || this.freeIds(name) <= 0) continue;
      const where = { region: this.#context.region(name), view, pool };
      const source = await sourceOf(this.#context, where);
      const request = placementRequest({ ...where, source }, machine.size);
      const decision = chooseHost(request, this.facts(view));
      if (!decision.placed) continue;
      const held = this.addresses(name);
      const own = await addressesBeside(this.#context, where, { machine: machine.id, held });
      if (!own.chosen) continue;
      this.#reserve(machine, name, { decision, memoryBytes: request.size.memoryBytes });
      this.#holdAddresses(machine, name, own.addresses);
      return;
    }
  }

  #holdAddresses({ id, pool }: Machine, region: string, addresses: readonly string[]): void {
    const held = this.#held.get(region)?.addresses;
    for (const address of addresses) {
      held?.push({ address, region, pool, machine: id, leasedAt: this.#context.now });
    }
  }

  #reserve(
    { id, pool, size }: Machine,
    region: string,
    { decision, memoryBytes }: { readonly decision: Placed; readonly memoryBytes: number },
  ): void {
    const held = this.#held.get(region) ?? {
      ledger: new HostAllocations(),
      reservations: [],
      addresses: [],
    };
    this.#held.set(region, held);
    const reservation = {
      // A placeholder: the VM id is chosen when the machine is placed.
      vmId: -1 - held.reservations.length,
      pool,
      host: decision.host,
      cpus: size.cpu,
      memoryBytes,
      storage: decision.storage,
      pendingDiskBytes: size.diskBytes,
    };
    held.ledger.setReservation(id, reservation);
    held.reservations.push(reservation);
    this.#waiting.set(pool, new Set(this.waitingOf(pool)).add(id));
  }
}

function together(facts: RegionFacts, { ledger, reservations }: Held): RegionFacts {
  return {
    ...facts,
    reservations: [...facts.reservations, ...reservations],
    allocations: {
      allocationOf: (host) => sum(facts.allocations?.allocationOf(host), ledger.allocationOf(host)),
    },
  };
}

type Tally = ReturnType<HostAllocations['allocationOf']>;

function sum(left: Tally, right: Tally): Tally {
  if (left === undefined || right === undefined) return left ?? right;
  const pools = new Map(left.pools);
  for (const [pool, count] of right.pools) pools.set(pool, (pools.get(pool) ?? 0) + count);
  return {
    cpus: left.cpus + right.cpus,
    memoryBytes: left.memoryBytes + right.memoryBytes,
    stoppedCpus: left.stoppedCpus + right.stoppedCpus,
    stoppedMemoryBytes: left.stoppedMemoryBytes + right.stoppedMemoryBytes,
    vms: left.vms + right.vms,
    pools,
  };
}
