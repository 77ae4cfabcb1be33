// SPDX-License-Identifier: Apache-2.0
// Which machines do these pending pods need?

import type { Pod } from '../../model/pod.ts';
import { newPlacedPodOn } from '../filters/volume-binding.ts';
import type { FilterReason } from '../reasons.ts';
import { Draft, type Snapshot } from '../snapshot.ts';
import type { ClusterState } from '../state/cluster-state.ts';
import type { Bin } from './bins.ts';
import type { LimitHit } from './budget.ts';
import { groupPods } from './groups.ts';
import type { MachinePlanner } from './machine-planner.ts';
import { type MachineTemplate, templatesOf } from './machine-template.ts';
import type { Limits, PoolOffer } from './offer.ts';
import { compareByCost, compareByMachines, isImprovement } from './packing-plan.ts';
import type { PackingPlan, PlanCost } from './packing-task.ts';
import {
  fillMachines,
  fillNodes,
  type GroupProgress,
  startProgress,
  unfinished,
} from './passes.ts';
import { Placer } from './placer.ts';
import { explainRefusals } from './refusals.ts';
import type {
  ExistingPlacement,
  Packing,
  PlannedMachine,
  SkippedPod,
  UnplacedPod,
} from './result.ts';
import { resourceWeights, type Weights } from './weights.ts';

export interface PackOptions {
  readonly pools: readonly PoolOffer[];
  /** Pods of lower priority neither need machines nor block capacity for other pods. */
  readonly expendableBelow?: number;
  /** Limits of domains, by name, that all pools share. */
  readonly domainLimits?: ReadonlyMap<string, Limits>;
}

export function pack(snapshot: Snapshot, pending: readonly Pod[], options: PackOptions): Packing {
  const request = { snapshot, pending, options };
  const usual = packPlanned(request);
  const best = packCompanions(request, usual);
  return packWithinLimits(best.request, best);
}

interface Packed extends PackAttempt {
  readonly request: PackRequest;
}

function packPlanned(request: PackRequest): Packed {
  const first = attempt(request);
  const better = first.isPriced ? byCost : byMachines;
  const plan = better(first.plans, first);
  const second = plan && attempt({ ...request, plan });
  // A filter or a limit may have kept pods off their machine.
  const isBetter =
    second !== undefined &&
    compareUnplaced(second.packing, first.packing) <= 0 &&
    better([second], first) !== undefined;
  if (!isBetter) return { ...first, request };
  const { packing, machines, cost } = second;
  return { ...first, packing, machines, cost, request };
}

/** How many numbers of machines are tried for pods that must run on one node. */
const MAX_COMPANION_ATTEMPTS = 4;

/**
 * Pods that must run beside others may be left because the machines of those have no space for them. Tries larger machines;
 * takes what leaves the fewest pods, of the highest priority first, and among those the best.
 */
function packCompanions(request: PackRequest, usual: Packed): Packed {
  const isLeft = usual.packing.unplaced.some(({ refusals }) =>
    refusals.some(({ reasons }) => reasons.some(isWithoutCompanion)),
  );
  if (!isLeft || usual.packing.machines.length === 0) return usual;
  const better = usual.isPriced ? byCost : byMachines;
  const most = Math.max(1, Math.floor(MAX_PLANNED_PODS / request.pending.length));
  let best = usual;
  for (let extra = 0; extra < Math.min(most, MAX_COMPANION_ATTEMPTS); extra += 1) {
    const found = packPlanned({ ...request, extraForCompanions: extra });
    const difference = compareUnplaced(found.packing, best.packing);
    if (difference < 0 || (difference === 0 && better([found], best) !== undefined)) best = found;
  }
  return best;
}

function isWithoutCompanion(reason: FilterReason): boolean {
  return reason.filter === 'InterPodAffinity' && reason.problem === 'no-matching-pod';
}

/**
 * Pods may be left because machines of another kind have used up a limit. Tries the plan with the fewest machines, and
 * sizes that need the least of what is limited; takes what leaves the fewest pods, of the highest priority first.
 */
function packWithinLimits(request: PackRequest, { packing, plans }: PackAttempt): Packing {
  const hits = new Set(
    packing.unplaced.flatMap(({ refusals }) => refusals.map(({ limit }) => limit?.limit)),
  );
  let best = packing;
  const tryRequest = (one: PackRequest): readonly PackingPlan[] => {
    if (best.unplaced.length === 0) return [];
    const found = attempt(one);
    if (compareUnplaced(found.packing, best) < 0) best = found.packing;
    return found.plans;
  };
  if (packing.machines.length === 0) return best;
  const most = Math.floor(MAX_PLANNED_PODS / request.pending.length);
  const some = (sorted: readonly PackingPlan[]): readonly PackingPlan[] =>
    sorted.slice(0, Math.max(1, Math.min(MAX_PLANS, most)));
  if (hits.has('machines')) {
    for (const plan of some(plans.toSorted(compareByMachines))) tryRequest({ ...request, plan });
  }
  for (const { limit, weights } of LIMITED_RESOURCES) {
    if (!hits.has(limit)) continue;
    const found = tryRequest({ ...request, weights });
    for (const plan of some(found.toSorted(compareByCost)))
      tryRequest({ ...request, weights, plan });
  }
  return best;
}

/** How many plans are tried for each limit that leaves pods without a machine, and for how many pods in all. */
const MAX_PLANS = 5;
const MAX_PLANNED_PODS = 5_000;

/** Negative if the first one leaves fewer pods of the highest priority in which they differ. */
function compareUnplaced(one: Packing, other: Packing): number {
  const differences = new Map<number, number>();
  const count = ({ unplaced }: Packing, by: 1 | -1): void => {
    for (const { pod } of unplaced)
      differences.set(pod.priority, (differences.get(pod.priority) ?? 0) + by);
  };
  count(one, 1);
  count(other, -1);
  const [highest] = [...differences]
    .filter(([, difference]) => difference !== 0)
    .toSorted(([a], [b]) => b - a);
  return highest?.[1] ?? 0;
}

/** Weights with which the cost of a machine is what it takes of a limit. */
const LIMITED_RESOURCES: readonly {
  readonly limit: LimitHit['limit'];
  readonly weights: Weights;
}[] = [
  { limit: 'cpu', weights: { cpu: 1, memory: 2 ** -50, isPriced: false } },
  { limit: 'memory', weights: { cpu: 2 ** -10, memory: 1, isPriced: false } },
];

// With prices, the cheapest plan.
function byCost<T extends PlanCost>(plans: readonly T[], current: PlanCost): T | undefined {
  const [best] = plans.toSorted(compareByCost);
  return best !== undefined && compareByCost(best, current) < 0 ? best : undefined;
}

// Without prices, capacity is the cost, and a machine costs something beside its capacity. A plan with less
// capacity must not need more machines, and one with fewer machines no more capacity.
function byMachines<T extends PlanCost>(plans: readonly T[], current: PlanCost): T | undefined {
  return plans.filter((plan) => isImprovement(plan, current)).toSorted(compareByMachines)[0];
}

function attempt(request: PackRequest): PackAttempt {
  const cluster = request.snapshot.activate();
  const nodeCount = cluster.nodeInfos.length;
  const draft = new Draft(cluster);
  try {
    return packInto(draft, request);
  } finally {
    draft.undo();
    cluster.dropNodeInfos(nodeCount);
  }
}

interface PackRequest {
  readonly snapshot: Snapshot;
  readonly pending: readonly Pod[];
  readonly options: PackOptions;
  readonly plan?: PackingPlan;
  /** See `MachineContext`. */
  readonly extraForCompanions?: number;
  /** Absent: computed from the pods. */
  readonly weights?: Weights;
}

interface PackAttempt extends PlanCost {
  readonly packing: Packing;
  readonly isPriced: boolean;
  readonly plans: readonly PackingPlan[];
}

function packInto(draft: Draft, request: PackRequest): PackAttempt {
  const { options } = request;
  const { pools } = options;
  const { cluster } = draft;
  const { eligible, skipped } = splitPending(request);
  removeExpendable(draft, options.expendableBelow);
  const nominated = placeNominated(draft, request.snapshot, eligible);
  const waiting = eligible.filter((pod) => !nominated.has(pod));
  const weights = request.weights ?? resourceWeights(waiting, pools);
  const work = startProgress(groupPods(waiting, cluster, weights));
  const placer = new Placer(draft, weights);
  for (const nodeInfo of cluster.nodeInfos) if (nodeInfo.isPresent) placer.addNode(nodeInfo);
  // Existing nodes first: exactly what the scheduler could place now.
  fillNodes(work, placer);
  const templates = templatesOf(pools, {
    cluster,
    weights,
    daemonSets: request.snapshot.daemonSets,
    domainLimits: options.domainLimits ?? new Map(),
  });
  const { machines, plans } = fillMachines(unfinished(work), {
    placer,
    templates,
    weights,
    plan: request.plan,
    extraForCompanions: request.extraForCompanions,
  });
  const lateDaemonPods = machines.admitDaemonPods();
  const packing = {
    ...summarize(placer, machines, nominated),
    lateDaemonPods: lateDaemonPods.map(({ pod, bin }) => ({ pod, node: bin.nodeInfo.node.name })),
    unplaced: explainUnplaced(unfinished(work), templates, cluster),
    skipped,
  };
  return {
    packing,
    plans,
    isPriced: weights.isPriced,
    machines: machines.opened.length,
    cost: machines.cost,
  };
}

function splitPending({ pending, options }: PackRequest): {
  readonly eligible: readonly Pod[];
  readonly skipped: readonly SkippedPod[];
} {
  const eligible: Pod[] = [];
  const skipped: SkippedPod[] = [];
  for (const pod of pending) {
    const reason = skipReason(pod, options);
    if (reason === undefined) eligible.push(pod);
    else skipped.push({ pod, reason });
  }
  return { eligible, skipped };
}

function skipReason(pod: Pod, { expendableBelow }: PackOptions): SkippedPod['reason'] | undefined {
  if (pod.isFinished) return 'finished';
  if (pod.isTerminating) return 'terminating';
  if (pod.isGated) return 'gated';
  // The controller creates one pod per node; a new node would only add another.
  if (pod.controller?.kind === 'DaemonSet') return 'daemon';
  return isExpendable(pod, expendableBelow) ? 'expendable' : undefined;
}

function isExpendable(pod: Pod, below: number | undefined): boolean {
  return below !== undefined && pod.priority < below;
}

// The scheduler preempts them when it needs their capacity.
function removeExpendable(draft: Draft, below: number | undefined): void {
  for (const nodeInfo of below === undefined ? [] : draft.cluster.nodeInfos) {
    for (const placedPod of nodeInfo.placedPods.toReversed()) {
      if (isExpendable(placedPod.pod, below)) draft.removePod(placedPod, nodeInfo);
    }
  }
}

/** The scheduler is already preempting pods for these: they count as placed on their nominated node. */
function placeNominated(
  draft: Draft,
  snapshot: Snapshot,
  eligible: readonly Pod[],
): ReadonlyMap<Pod, string> {
  const others = [...snapshot.nominated.values()].flat();
  const known = new Set(eligible.map((pod) => pod.uid));
  const places = new Map<Pod, string>();
  for (const pod of [...eligible, ...others.filter(({ uid }) => !known.has(uid))]) {
    const nodeInfo = draft.cluster.nodeInfo(pod.nominatedNodeName);
    if (nodeInfo === undefined) continue;
    draft.addPod(newPlacedPodOn(nodeInfo, pod, draft.cluster), nodeInfo);
    if (known.has(pod.uid)) places.set(pod, nodeInfo.node.name);
  }
  return places;
}

function summarize(
  placer: Placer,
  machines: MachinePlanner,
  nominated: ReadonlyMap<Pod, string>,
): Pick<Packing, 'machines' | 'existing' | 'steps'> {
  const podsOf = Map.groupBy(placer.placements, ({ bin }) => bin.nodeInfo);
  const existing: ExistingPlacement[] = [
    ...[...nominated].map(([pod, node]) => ({ pod, node, how: 'nominated' as const })),
    ...placer.placements
      .filter(({ bin }) => bin.machine === undefined)
      .map(({ pod, bin }) => ({ pod, node: bin.nodeInfo.node.name, how: 'fits' as const })),
  ];
  return {
    existing,
    steps: placer.placements.map(({ pod, bin }) => ({ pod, node: bin.nodeInfo.node.name })),
    machines: machines.opened.map((bin) =>
      plannedMachine(
        bin,
        (podsOf.get(bin.nodeInfo) ?? []).map(({ pod }) => pod),
      ),
    ),
  };
}

function plannedMachine({ nodeInfo, machine }: Bin, pods: readonly Pod[]): PlannedMachine {
  if (machine === undefined) throw new RangeError('the bin has no machine');
  const { template, option } = machine;
  return {
    pool: template.pool.name,
    domain: template.domain.name,
    size: option.size,
    node: { ...nodeInfo.node, allocatable: option.size.allocatable },
    pods,
    daemons: machine.daemonPods,
  };
}

function explainUnplaced(
  work: readonly GroupProgress[],
  templates: readonly MachineTemplate[],
  cluster: ClusterState,
): readonly UnplacedPod[] {
  const why = explainRefusals(
    work.map(({ group }) => group),
    templates,
    cluster,
  );
  return work.flatMap(({ group, placed }) =>
    group.pods.slice(placed).map((pod) => ({ pod, refusals: why.get(group) ?? [] })),
  );
}
