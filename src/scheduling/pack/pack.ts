// SPDX-License-Identifier: Apache-2.0
// What machines would these pods need?

import type { Pod } from '../../model/pod.ts';
import { Draft, type Snapshot } from '../snapshot.ts';
import type { World } from '../state/world.ts';
import type { Bin } from './bins.ts';
import { groupPods } from './groups.ts';
import type { Machines } from './machines.ts';
import type { Limits, PoolOffer } from './offer.ts';
import { Placer } from './placer.ts';
import { refusals } from './refusals.ts';
import type { ExistingPlacement, Packing, PlannedMachine, Skipped, Unplaced } from './result.ts';
import { fillMachines, fillNodes, newWork, type Progress, unfinished } from './rounds.ts';
import { type Template, templatesOf } from './template.ts';
import { weigh } from './weights.ts';

export interface PackOptions {
  readonly pools: readonly PoolOffer[];
  /** Pods of a lower priority neither ask for machines nor take room from those that do. */
  readonly expendableBelow?: number;
  /** Limits of places, by name, that all pools share. */
  readonly domainLimits?: ReadonlyMap<string, Limits>;
}

export function pack(snapshot: Snapshot, pending: readonly Pod[], options: PackOptions): Packing {
  const world = snapshot.enter();
  const slots = world.slots.length;
  const draft = new Draft(world);
  try {
    return packInto(draft, { snapshot, pending, options });
  } finally {
    draft.undo();
    world.forgetSlots(slots);
  }
}

interface Question {
  readonly snapshot: Snapshot;
  readonly pending: readonly Pod[];
  readonly options: PackOptions;
}

function packInto(draft: Draft, question: Question): Packing {
  const { options } = question;
  const { pools } = options;
  const { world } = draft;
  const { asking, skipped } = sift(question);
  dismissExpendable(draft, options.expendableBelow);
  const nominated = placeNominated(draft, question.snapshot, asking);
  const waiting = asking.filter((pod) => !nominated.has(pod));
  const weights = weigh(waiting, pools);
  const work = newWork(groupPods(waiting, world, weights));
  const placer = new Placer(draft, weights);
  for (const slot of world.slots) if (slot.isPresent) placer.addNode(slot);
  // First what needs no machine: exactly what the scheduler could do by itself now.
  fillNodes(work, placer);
  const templates = templatesOf(pools, {
    names: world.resources,
    weights,
    daemonSets: question.snapshot.daemonSets,
    domainLimits: options.domainLimits ?? new Map(),
  });
  const machines = fillMachines(unfinished(work), { placer, templates, weights });
  const latecomers = machines.settle();
  return {
    ...report(placer, machines, nominated),
    latecomers: latecomers.map(({ pod, bin }) => ({ pod, node: bin.slot.node.name })),
    unplaced: explain(unfinished(work), templates, world),
    skipped,
  };
}

function sift({ pending, options }: Question): {
  readonly asking: readonly Pod[];
  readonly skipped: readonly Skipped[];
} {
  const asking: Pod[] = [];
  const skipped: Skipped[] = [];
  for (const pod of pending) {
    const why = whySkipped(pod, options);
    if (why === undefined) asking.push(pod);
    else skipped.push({ pod, why });
  }
  return { asking, skipped };
}

function whySkipped(pod: Pod, { expendableBelow }: PackOptions): Skipped['why'] | undefined {
  if (pod.isFinished) return 'finished';
  if (pod.isTerminating) return 'terminating';
  if (pod.isGated) return 'gated';
  // Its controller makes one for each node there is; a new node would only bring another.
  if (pod.controller?.kind === 'DaemonSet') return 'daemon';
  return isExpendable(pod, expendableBelow) ? 'expendable' : undefined;
}

function isExpendable(pod: Pod, below: number | undefined): boolean {
  return below !== undefined && pod.priority < below;
}

// The scheduler will evict them when it needs their room.
function dismissExpendable(draft: Draft, below: number | undefined): void {
  for (const slot of below === undefined ? [] : draft.world.slots) {
    for (const resident of slot.residents) {
      if (isExpendable(resident.pod, below)) draft.displace(resident, slot);
    }
  }
}

/** Room is being made for these already: they have their place, whatever is still in it. */
function placeNominated(
  draft: Draft,
  snapshot: Snapshot,
  asking: readonly Pod[],
): ReadonlyMap<Pod, string> {
  const others = [...snapshot.nominated.values()].flat();
  const known = new Set(asking.map((pod) => pod.uid));
  const places = new Map<Pod, string>();
  for (const pod of [...asking, ...others.filter(({ uid }) => !known.has(uid))]) {
    const slot = draft.world.slot(pod.nominatedNodeName);
    if (slot === undefined) continue;
    draft.place(draft.world.resident(pod, pod.requests), slot);
    if (known.has(pod.uid)) places.set(pod, slot.node.name);
  }
  return places;
}

function report(
  placer: Placer,
  machines: Machines,
  nominated: ReadonlyMap<Pod, string>,
): Pick<Packing, 'machines' | 'existing' | 'steps'> {
  const podsOf = Map.groupBy(placer.placements, ({ bin }) => bin.slot);
  const existing: ExistingPlacement[] = [
    ...[...nominated].map(([pod, node]) => ({ pod, node, how: 'nominated' as const })),
    ...placer.placements
      .filter(({ bin }) => bin.machine === undefined)
      .map(({ pod, bin }) => ({ pod, node: bin.slot.node.name, how: 'fits' as const })),
  ];
  return {
    existing,
    steps: placer.placements.map(({ pod, bin }) => ({ pod, node: bin.slot.node.name })),
    machines: machines.opened.map((bin) =>
      planned(
        bin,
        (podsOf.get(bin.slot) ?? []).map(({ pod }) => pod),
      ),
    ),
  };
}

function planned({ slot, machine }: Bin, pods: readonly Pod[]): PlannedMachine {
  if (machine === undefined) throw new RangeError('not a machine');
  const { template, rung } = machine;
  return {
    pool: template.pool.name,
    domain: template.domain.name,
    size: rung.size,
    node: { ...slot.node, allocatable: rung.size.allocatable },
    pods,
    daemons: machine.settled,
  };
}

function explain(
  work: readonly Progress[],
  templates: readonly Template[],
  world: World,
): readonly Unplaced[] {
  const why = refusals(
    work.map(({ group }) => group),
    templates,
    world,
  );
  return work.flatMap(({ group, placed }) =>
    group.pods.slice(placed).map((pod) => ({ pod, refusals: why.get(group) ?? [] })),
  );
}
