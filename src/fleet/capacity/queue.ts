// SPDX-License-Identifier: Apache-2.0
// What machines that wait for their turn will take: they were accepted before whoever asks for room now. Each is put
// where it would go if all hosts had a turn free; nothing of it is written down.
import type { Machine } from '../../model/machine.ts';
import {
  chooseHost,
  HostLedger,
  type Placed,
  type RegionFacts,
  type Reservation,
} from '../../placement/index.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import type { Turn } from '../turn.ts';
import { backoffOf } from './backoff.ts';
import { placementFacts } from './facts.ts';
import { placementRequest, sourceOf } from './place.ts';

interface Held {
  readonly ledger: HostLedger;
  readonly reservations: Reservation[];
}

export class Queue {
  readonly #turn: Turn;
  readonly #held = new Map<string, Held>();
  readonly #waiting = new Map<string, Set<string>>();

  private constructor(turn: Turn) {
    this.#turn = turn;
  }

  static async of(turn: Turn): Promise<Queue> {
    const queue = new Queue(turn);
    const waiting = turn.books.census
      .inPhase('requested')
      .filter(({ id, pool }) => !turn.books.isLeaving(id) && backoffOf(turn, pool) === undefined)
      .toSorted((a, b) => a.requestedAt - b.requestedAt || (a.id < b.id ? -1 : 1));
    for (const machine of waiting) {
      await queue.#hold(machine);
      await turn.breathe();
    }
    return queue;
  }

  /** Those of the pool's own that wait and will find a place. */
  waitingOf(pool: string): ReadonlySet<string> {
    return this.#waiting.get(pool) ?? new Set();
  }

  heldIn(region: string): number {
    return this.#held.get(region)?.reservations.length ?? 0;
  }

  /** The region as it will be when everybody in the queue has had his turn. */
  facts(view: RegionView): RegionFacts {
    const facts = placementFacts(this.#turn, { view, busyHosts: [] });
    const held = this.#held.get(view.region);
    return held === undefined ? facts : together(facts, held);
  }

  async #hold(machine: Machine): Promise<void> {
    const pool = this.#turn.pool(machine.pool);
    for (const name of pool?.regions ?? []) {
      const view = this.#turn.views.get(name);
      if (pool === undefined || view === undefined) continue;
      const where = { region: this.#turn.region(name), view, pool };
      const source = await sourceOf(this.#turn, where);
      const request = placementRequest({ ...where, source }, machine.size);
      const decision = chooseHost(request, this.facts(view));
      if (!decision.placed) continue;
      this.#reserve(machine, name, { decision, memoryBytes: request.size.memoryBytes });
      return;
    }
  }

  #reserve(
    { id, pool, size }: Machine,
    region: string,
    { decision, memoryBytes }: { readonly decision: Placed; readonly memoryBytes: number },
  ): void {
    const held = this.#held.get(region) ?? { ledger: new HostLedger(), reservations: [] };
    this.#held.set(region, held);
    const reservation = {
      // No VM has it: ids are given out with the place.
      vmId: -1 - held.reservations.length,
      pool,
      host: decision.host,
      cpus: size.cpu,
      memoryBytes,
      storage: decision.storage,
      pendingDiskBytes: size.diskBytes,
    };
    held.ledger.reserve(id, reservation);
    held.reservations.push(reservation);
    this.#waiting.set(pool, new Set(this.waitingOf(pool)).add(id));
  }
}

function together(facts: RegionFacts, { ledger, reservations }: Held): RegionFacts {
  return {
    ...facts,
    reservations: [...facts.reservations, ...reservations],
    ledger: { tally: (host) => sum(facts.ledger?.tally(host), ledger.tally(host)) },
  };
}

type Tally = ReturnType<HostLedger['tally']>;

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
