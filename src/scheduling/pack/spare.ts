// SPDX-License-Identifier: Apache-2.0
// The next machine of a template. While there can be one, it stands in the cluster, empty: so spread sees
// the domains that are about to come, and what is placed now stays right when they are there.

import type { Slot } from '../state/slot.ts';
import type { World } from '../state/world.ts';
import { type Bin, newBin } from './bins.ts';
import { newMachine } from './budget.ts';
import type { PodGroup } from './groups.ts';
import type { Rung } from './ladder.ts';
import { loadWith } from './load.ts';
import type { Placer } from './placer.ts';
import { ANY_MACHINE, type Template } from './template.ts';

export class Spare {
  readonly template: Template;
  readonly ruleClass: number;
  readonly #placer: Placer;
  /** What its DaemonSets hold, by resource number. */
  readonly #daemonLoad: readonly number[];
  #slot: Slot | undefined;

  readonly #model: Bin;

  constructor(template: Template, placer: Placer) {
    this.template = template;
    this.ruleClass = placer.newRuleClass();
    this.#model = newBin(placer.draft.world.newSlot(template.node(ANY_MACHINE)), this.ruleClass);
    this.#placer = placer;
    this.#daemonLoad = daemonLoad(template, placer.draft.world);
  }

  /** Whether its nodes are for pods of the group at all. */
  allows(group: PodGroup): boolean {
    return this.#placer.isAllowed(group, this.#model);
  }

  /** Whether the limits leave room for the smallest machine that holds the daemons. */
  isOpenable(): boolean {
    const rung = this.template.ladder.fit(this.#daemonLoad, 0);
    if (rung === undefined) return false;
    return this.template.hit(newMachine(rung.size.capacity)) === undefined;
  }

  provide(): void {
    if (!this.isOpenable()) return;
    const { template } = this;
    const { draft } = this.#placer;
    const name = this.#placer.freeName(template.pool.name);
    this.#slot = draft.addNode(template.node(name));
    for (const pod of template.daemons(name)) {
      draft.place(draft.world.resident(pod, pod.requests), this.#slot);
    }
  }

  withdraw(): void {
    if (this.#slot !== undefined) this.#placer.draft.removeNode(this.#slot);
    this.#slot = undefined;
  }

  /** Hands it over to become a machine. */
  take(): Slot {
    const slot = this.#slot;
    if (slot === undefined) throw new RangeError('nothing of this template can be opened');
    this.#slot = undefined;
    return slot;
  }

  /** The cheapest size that would hold the daemons and one pod of the group. */
  rungFor(group: PodGroup): Rung | undefined {
    if (this.#slot === undefined) return undefined;
    const rung = this.template.ladder.fit(loadWith(group, this.#slot), 0);
    if (rung === undefined) return undefined;
    return this.template.hit(newMachine(rung.size.capacity)) === undefined ? rung : undefined;
  }

  accepts(group: PodGroup): boolean {
    return (
      this.#slot !== undefined && this.#placer.accepts(group, newBin(this.#slot, this.ruleClass))
    );
  }

  /** The user's order, then the price, then the pod's own wishes, then evenly over the places. */
  rank(group: PodGroup, rung: Rung): readonly number[] {
    const { pool, machines } = this.template;
    const wish =
      this.#slot === undefined
        ? 0
        : this.#placer.preference(group, newBin(this.#slot, this.ruleClass));
    return [-(pool.priority ?? 0), rung.cost, -wish, machines];
  }
}

function daemonLoad(template: Template, { resources }: World): readonly number[] {
  const load: number[] = [];
  for (const pod of template.daemons(ANY_MACHINE)) {
    for (const [id, amount] of resources.vector(pod.requests).entries()) {
      load[id] = (load[id] ?? 0) + amount;
    }
  }
  return Array.from(load, (amount) => amount ?? 0);
}
