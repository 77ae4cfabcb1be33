// SPDX-License-Identifier: Apache-2.0
// Why no new machine would take a pod, pool by pool and place by place.

import { allReasons } from '../filters/all.ts';
import type { Reason } from '../reasons.ts';
import { Draft } from '../snapshot.ts';
import type { Slot } from '../state/slot.ts';
import type { World } from '../state/world.ts';
import { newMachine } from './budget.ts';
import { Daemons } from './daemons.ts';
import type { PodGroup } from './groups.ts';
import type { Rung } from './ladder.ts';
import { loadWith } from './load.ts';
import type { Refusal } from './result.ts';
import { ANY_MACHINE, type Template } from './template.ts';

/** For each group one refusal for each template. */
export function refusals(
  groups: readonly PodGroup[],
  templates: readonly Template[],
  world: World,
): ReadonlyMap<PodGroup, readonly Refusal[]> {
  const found = new Map<PodGroup, Refusal[]>(groups.map((group) => [group, []]));
  for (const template of templates) {
    // The machine is tried out once for all groups: bringing it is what costs.
    const slots = world.slots.length;
    const draft = new Draft(world);
    const slot = probe(template, draft);
    for (const [group, all] of found) all.push(refusal(group, template, { slot, world }));
    draft.undo();
    world.forgetSlots(slots);
  }
  return found;
}

function probe(template: Template, draft: Draft): Slot {
  const slot = draft.addNode(template.node(ANY_MACHINE));
  new Daemons(template.daemons(ANY_MACHINE), slot, draft.world).settle(draft);
  return slot;
}

function refusal(
  group: PodGroup,
  template: Template,
  { slot, world }: { readonly slot: Slot; readonly world: World },
): Refusal {
  const { pool, domain, ladder } = template;
  const rung = ladder.fit(loadWith(group.candidate.demand, slot.used), 0);
  // The node of a template has no size yet: room is judged by the sizes there are.
  const others = allReasons(group.candidate, slot, world).filter(
    ({ filter }) => filter !== 'NodeResourcesFit',
  );
  const shortage =
    rung === undefined ? [shortfall(group, slot, { rung: ladder.largest, world })] : [];
  const limit = template.hit(newMachine((rung ?? ladder.largest).size.capacity));
  return {
    pool: pool.name,
    domain: domain.name,
    reasons: [...shortage, ...others],
    ...(limit !== undefined && { limit }),
  };
}

function shortfall(
  group: PodGroup,
  slot: Slot,
  { rung, world }: { readonly rung: Rung; readonly world: World },
): Reason {
  const { ids, amounts } = group.candidate.demand;
  const all = ids.map((id, i) => ({
    resource: world.resources.name(id),
    requested: amounts[i] ?? 0,
    used: slot.used[id] ?? 0,
    allocatable: rung.holds[id] ?? 0,
  }));
  const short = all.filter(({ requested, used, allocatable }) => requested > allocatable - used);
  return { filter: 'NodeResourcesFit', shortfalls: short };
}
