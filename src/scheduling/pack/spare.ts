// SPDX-License-Identifier: Apache-2.0
// The next machine of a template. While there can be one, it stands in the cluster, empty: so spread sees
// the domains that are about to come, and what is placed now stays right when they are there. Its daemons
// come when it is opened: who reckoned with them before might be left alone.

import type { Demand } from '../state/resource-names.ts';
import type { Slot } from '../state/slot.ts';
import { type Bin, newBin } from './bins.ts';
import { newMachine } from './budget.ts';
import { Daemons } from './daemons.ts';
import type { PodGroup } from './groups.ts';
import { isHeld, type Rung } from './ladder.ts';
import { addLoads, type Load, loadWith, NOTHING } from './load.ts';
import type { Placer } from './placer.ts';
import { ANY_MACHINE, type Template } from './template.ts';

const NO_DEMAND: Demand = { ids: [], amounts: [] };

interface Next {
  readonly slot: Slot;
  readonly daemons: Daemons;
}

export class Spare {
  readonly template: Template;
  readonly ruleClass: number;
  readonly #placer: Placer;
  readonly #model: Bin;
  #next: Next | undefined;

  constructor(template: Template, placer: Placer) {
    this.template = template;
    this.ruleClass = placer.newRuleClass();
    this.#model = newBin(placer.draft.world.newSlot(template.node(ANY_MACHINE)), this.ruleClass);
    this.#placer = placer;
  }

  /** Whether its nodes are for pods of the group at all. */
  allows(group: PodGroup): boolean {
    return this.#placer.isAllowed(group, this.#model);
  }

  /** Whether the limits leave room for the smallest machine that holds the daemons. */
  isOpenable(): boolean {
    return this.#rung(NO_DEMAND) !== undefined;
  }

  provide(): void {
    if (this.#within(NOTHING) === undefined) return;
    const { template } = this;
    const { draft } = this.#placer;
    const name = this.#placer.freeName(template.pool.name);
    const slot = draft.addNode(template.node(name));
    this.#next = { slot, daemons: new Daemons(template.daemons(name), slot, draft.world) };
    if (!this.isOpenable()) this.withdraw();
  }

  withdraw(): void {
    if (this.#next !== undefined) this.#placer.draft.removeNode(this.#next.slot);
    this.#next = undefined;
  }

  /** Hands it over, with its daemons, to become a machine for a pod of the group. */
  take(group: PodGroup, rung: Rung): Bin {
    if (this.#next === undefined) throw new RangeError('nothing of this template can be opened');
    const { slot, daemons } = this.#next;
    this.#next = undefined;
    const settled = daemons.settle(this.#placer.draft, rung);
    const kept = daemons.load;
    const isRoomFor = isHeld(
      addLoads(loadWith(group.candidate.demand, slot.used), kept),
      rung.holds,
    );
    return newBin(slot, this.ruleClass, {
      template: this.template,
      rung,
      daemons,
      settled,
      kept: isRoomFor ? kept : NOTHING,
    });
  }

  /** The cheapest size that would hold the daemons and one pod of the group. */
  rungFor({ candidate }: PodGroup): Rung | undefined {
    return this.#rung(candidate.demand);
  }

  // With room for daemons that must wait; without it, where that is the only way.
  #rung(demand: Demand): Rung | undefined {
    if (this.#next === undefined) return undefined;
    const { slot, daemons } = this.#next;
    const rung = this.#within(loadWith(demand, daemons.load));
    if (rung !== undefined || daemons.isEmpty) return rung;
    return daemons.visit(() => this.#within(loadWith(demand, slot.used)));
  }

  #within(load: Load): Rung | undefined {
    const rung = this.template.ladder.fit(load, 0);
    if (rung === undefined) return undefined;
    return this.template.hit(newMachine(rung.size.capacity)) === undefined ? rung : undefined;
  }

  accepts(group: PodGroup): boolean {
    if (this.#next === undefined) return false;
    const { slot, daemons } = this.#next;
    return daemons.visit(() => this.#placer.accepts(group, newBin(slot, this.ruleClass)));
  }

  /** The user's order, then the price, then the pod's own wishes, then evenly over the places. */
  rank(group: PodGroup, rung: Rung): readonly number[] {
    const { pool, machines } = this.template;
    const wish = this.#placer.preference(group, this.#model);
    return [-(pool.priority ?? 0), rung.cost, -wish, machines];
  }
}
