// SPDX-License-Identifier: Apache-2.0
// Why no new machine would take a pod, pool by pool and place by place.

import { allReasons } from '../filters/all.ts';
import type { Reason } from '../reasons.ts';
import { Draft } from '../snapshot.ts';
import type { Slot } from '../state/slot.ts';
import type { World } from '../state/world.ts';
import { newMachine } from './budget.ts';
import type { PodGroup } from './groups.ts';
import type { Rung } from './ladder.ts';
import { loadWith } from './load.ts';
import type { Refusal } from './result.ts';
import { ANY_MACHINE, type Template } from './template.ts';

export function refusals(
  group: PodGroup,
  templates: readonly Template[],
  world: World,
): readonly Refusal[] {
  return templates.map((template) => refusal(group, template, world));
}

function refusal(group: PodGroup, template: Template, world: World): Refusal {
  const { pool, domain, ladder } = template;
  const slots = world.slots.length;
  const draft = new Draft(world);
  const slot = draft.addNode(template.node(ANY_MACHINE));
  for (const pod of template.daemons(ANY_MACHINE)) {
    draft.place(world.resident(pod, pod.requests), slot);
  }
  const rung = ladder.fit(loadWith(group, slot), 0);
  // The node of a template has no size yet: room is judged by the sizes there are.
  const others = allReasons(group.candidate, slot, world).filter(
    ({ filter }) => filter !== 'NodeResourcesFit',
  );
  const shortage =
    rung === undefined ? [shortfall(group, slot, { rung: ladder.largest, world })] : [];
  const limit = template.hit(newMachine((rung ?? ladder.largest).size.capacity));
  draft.undo();
  world.forgetSlots(slots);
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
