// SPDX-License-Identifier: Apache-2.0
// What machines would these pods need?

import type { Pod } from '../../model/pod.ts';
import { Draft, type Snapshot } from '../snapshot.ts';
import type { World } from '../state/world.ts';
import { type Bin, type Need, newBin } from './bins.ts';
import { groupPods, type PodGroup } from './groups.ts';
import type { Weights } from './ladder.ts';
import { Machines } from './machines.ts';
import { isRange, type Limits, type PoolOffer } from './offer.ts';
import { Placer } from './placer.ts';
import { refusals } from './refusals.ts';
import type { ExistingPlacement, Packing, PlannedMachine, Skipped, Unplaced } from './result.ts';
import { type Template, templatesOf } from './template.ts';

export interface PackOptions {
  readonly pools: readonly PoolOffer[];
  /** Pods of a lower priority neither ask for machines nor take room from those that do. */
  readonly expendableBelow?: number;
  /** Limits of places, by name, that all pools share. */
  readonly domainLimits?: ReadonlyMap<string, Limits>;
}

/** A group of which the first `placed` pods have a place. */
interface Progress {
  readonly group: PodGroup;
  placed: number;
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
  const work = groupPods(waiting, world, weights).map((group) => ({ group, placed: 0 }));
  const placer = new Placer(draft, weights);
  fillNodes(work, placer);
  const templates = templatesOf(pools, {
    names: world.resources,
    weights,
    daemonSets: question.snapshot.daemonSets,
    domainLimits: options.domainLimits ?? new Map(),
  });
  const machines = fillMachines(open(work), { placer, templates, weights });
  return {
    ...report(placer, machines, nominated),
    unplaced: explain(open(work), templates, world),
    skipped,
  };
}

function open(work: readonly Progress[]): readonly Progress[] {
  return work.filter(({ group, placed }) => placed < group.pods.length);
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

// A cpu and a byte are worth as much as the pods ask for them.
function weigh(pods: readonly Pod[], pools: readonly PoolOffer[]): Weights {
  const cpu = pods.reduce((sum, pod) => sum + pod.requests.cpuMilli, 0);
  const memory = pods.reduce((sum, pod) => sum + pod.requests.memoryBytes, 0);
  const isPriced = pools.every(
    ({ sizes }) => !isRange(sizes) && sizes.every((size) => size.price !== undefined),
  );
  return { cpu: 1 / Math.max(cpu, 1), memory: 1 / Math.max(memory, 1), isPriced };
}

/** First what needs no machine: exactly what the scheduler could do by itself now. */
function fillNodes(work: readonly Progress[], placer: Placer): void {
  for (const slot of placer.draft.world.slots) if (slot.isPresent) placer.addNode(slot);
  const floors = floorsOf(work);
  for (const [i, progress] of work.entries()) {
    placer.raiseFloor(floors[i] ?? NOTHING);
    progress.placed += placer.fill(progress.group, progress.placed);
  }
  placer.raiseFloor(NOTHING);
}

const NOTHING: Need = { cpuMilli: 0, memoryBytes: 0 };

/** For each group the least that it or any later one asks for. */
function floorsOf(work: readonly Progress[]): readonly Need[] {
  const floors: Need[] = [];
  let floor: Need = { cpuMilli: Number.POSITIVE_INFINITY, memoryBytes: Number.POSITIVE_INFINITY };
  for (const { group } of work.toReversed()) {
    floor = {
      cpuMilli: Math.min(floor.cpuMilli, group.cpuMilli),
      memoryBytes: Math.min(floor.memoryBytes, group.memoryBytes),
    };
    floors.push(floor);
  }
  return floors.toReversed();
}

interface Workshop {
  readonly placer: Placer;
  readonly templates: readonly Template[];
  readonly weights: Weights;
}

function fillMachines(work: readonly Progress[], workshop: Workshop): Machines {
  const { placer, weights } = workshop;
  const machines = new Machines(usefulTemplates(work, workshop), placer, weights);
  const floors = floorsOf(work);
  let coming = work.reduce((sum, { group }) => sum + costOfAll(group, weights), 0);
  for (const [i, progress] of work.entries()) {
    const floor = floors[i] ?? NOTHING;
    placer.raiseFloor(floor);
    machines.retire(floor);
    fillGroup(progress, placer, () => machines.room(progress.group, coming));
    coming -= costOfAll(progress.group, weights);
  }
  // What the machines to come kept from its place may have one now that it is known which ones come.
  machines.close();
  placer.raiseFloor(NOTHING);
  for (const bin of machines.opened) placer.refresh(bin);
  for (const progress of open(work)) {
    fillGroup(progress, placer, () => machines.grow(progress.group));
  }
  return machines;
}

function fillGroup(progress: Progress, placer: Placer, more: () => Bin | undefined): void {
  const { group } = progress;
  for (;;) {
    progress.placed += placer.fill(group, progress.placed);
    if (progress.placed === group.pods.length) return;
    const bin = more();
    if (bin === undefined) return;
    placer.place(group, progress.placed, bin);
    progress.placed += 1;
  }
}

function costOfAll(group: PodGroup, weights: Weights): number {
  const each = group.cpuMilli * weights.cpu + group.memoryBytes * weights.memory;
  return each * group.pods.length;
}

// A pool that nobody here can use brings no node, so its places are no domains either.
function usefulTemplates(
  work: readonly Progress[],
  { placer, templates }: Workshop,
): readonly Template[] {
  const { draft } = placer;
  return templates.filter((template) => {
    const bin = newBin(draft.world.newSlot(template.node('')), placer.newRuleClass());
    return work.some(
      ({ group }) =>
        placer.isAllowed(group, bin) && template.ladder.fit(loadOf(group), 0) !== undefined,
    );
  });
}

function loadOf({ candidate }: PodGroup): readonly number[] {
  const load: number[] = [];
  for (const [i, id] of candidate.demand.ids.entries()) load[id] = candidate.demand.amounts[i] ?? 0;
  return Array.from(load, (amount) => amount ?? 0);
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
    daemons: template.daemons(slot.node.name),
  };
}

function explain(
  work: readonly Progress[],
  templates: readonly Template[],
  world: World,
): readonly Unplaced[] {
  return work.flatMap(({ group, placed }) => {
    const why = refusals(group, templates, world);
    return group.pods.slice(placed).map((pod) => ({ pod, refusals: why }));
  });
}
