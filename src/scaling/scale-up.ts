// SPDX-License-Identifier: Apache-2.0
// Which machines do the pending pods need? Pods that fit on nodes, or on machines that are being provisioned, need none.

import type { Node } from '../model/node.ts';
import { isDaemonSetPod, type Pod, podKey } from '../model/pod.ts';
import type { Taint } from '../model/taints.ts';
import {
  type LimitHit,
  type Packing,
  type PlannedMachine,
  pack,
  type Snapshot,
  simulateDrain,
  type UnplacedPod,
  withExpectedNodes,
  withFittingPods,
  withoutNodes,
  withPods,
} from '../scheduling/index.ts';
import { type ExpectedNode, findExpectedNodes, findLeavingNodes } from './expected-nodes.ts';
import { isPlaceholder, placeholderPods } from './headroom.ts';
import { HOST_LABELS, hasHostAntiAffinity, isHostRelevant } from './host-rules.ts';
import type { ScalingInput } from './input.ts';
import { mergeHosts } from './merged-hosts.ts';
import {
  countPools,
  type HostLimits,
  type HostOrder,
  hostKey,
  hostLimitKey,
  type PoolState,
  poolOffers,
  sharedHostLimits,
} from './pool-offers.ts';

export interface Placement {
  readonly pod: Pod;
  readonly node: string;
}

export interface ScaleUp {
  readonly expected: readonly ExpectedNode[];
  /** Machines to request, in the order in which they were planned. */
  readonly machines: readonly PlannedMachine[];
  /** Pending pods that need no new machine. */
  readonly placements: readonly (Placement & { readonly isNominated: boolean })[];
  readonly unplaced: readonly UnplacedPod[];
  readonly skipped: Packing['skipped'];
  /** Pods that do not trigger a scale-up yet. */
  readonly tooNew: readonly Pod[];
  /** The cluster with expected nodes, without nodes that are being removed, with `placements`. */
  readonly cluster: Snapshot;
}

export function scaleUp(input: ScalingInput, states: ReadonlyMap<string, PoolState>): ScaleUp {
  const expected = findExpectedNodes(input);
  const nodes = [...expected.map(({ node }) => node), ...taintedNodes(input, expected)];
  const present = withoutLeavingNodes(
    nodes.length === 0 ? input.snapshot : withExpectedNodes(input.snapshot, nodes),
    input,
  );
  const { pending, daemons } = splitDaemonPods(input, expected, present);
  const assigned = placeAssigned(withPods(present, daemons), pending, { input, expected });
  const waiting = assigned.waiting.filter((pod) => !isTooNew(pod, input));
  const packing = limitToBatches(
    packPods(input, states, {
      cluster: assigned.cluster,
      pods: [...waiting, ...placeholderPods(input)],
    }),
    states,
  );
  const tooNew = assigned.waiting.filter((pod) => isTooNew(pod, input));
  // The snapshot keeps space for nominated pods.
  const cluster = withPods(
    assigned.cluster,
    packing.existing.filter(({ how }) => how === 'fits'),
  );
  const late = placeTooNew(cluster, tooNew, input);
  return {
    expected,
    machines: packing.machines,
    placements: [
      ...assigned.placed.map((one) => ({ ...one, isNominated: false })),
      ...packing.existing.map(({ pod, node, how }) => ({
        pod,
        node,
        isNominated: how === 'nominated',
      })),
      ...late.placed.map((one) => ({ ...one, isNominated: false })),
    ],
    unplaced: packing.unplaced,
    skipped: packing.skipped,
    tooNew: tooNew.filter((pod) => !late.placed.some((one) => one.pod === pod)),
    cluster: late.cluster,
  };
}

const NOT_READY: Taint = { key: 'node.kubernetes.io/not-ready', value: '', effect: 'NoSchedule' };

/** Nodes that are not Ready, with the taint that Kubernetes adds a moment later. */
function taintedNodes(
  { snapshot, unreadyNodes }: ScalingInput,
  expected: readonly ExpectedNode[],
): readonly Node[] {
  if (unreadyNodes.length === 0) return [];
  const unready = new Set(unreadyNodes);
  for (const { node } of expected) unready.delete(node.name);
  return snapshot.nodes
    .filter(({ name }) => unready.has(name))
    .map((node) => ({ ...node, taints: [...node.taints, NOT_READY] }));
}

/** Pods of nodes that are being removed are placed where they will fit; their drains count on that. */
function withoutLeavingNodes(snapshot: Snapshot, input: ScalingInput): Snapshot {
  const leaving = findLeavingNodes(input).map(({ name }) => name);
  if (leaving.length === 0) return snapshot;
  const { moves } = simulateDrain(snapshot, leaving, {
    expendableBelow: input.settings.expendablePriority,
    isAfterDeletion: true,
  });
  return withPods(
    withoutNodes(snapshot, leaving),
    moves.map(({ pod, to }) => ({ pod, node: to })),
  );
}

interface SplitPods {
  readonly pending: readonly Pod[];
  /** DaemonSet pods that will run on their node, which has become ready a moment ago. */
  readonly daemons: readonly Placement[];
}

function splitDaemonPods(
  { pending }: ScalingInput,
  expected: readonly ExpectedNode[],
  cluster: Snapshot,
): SplitPods {
  const daemonPods = pending.filter(isDaemonSetPod);
  if (daemonPods.length === 0) return { pending, daemons: [] };
  // Expected nodes have all their DaemonSet pods already.
  const complete = new Set(expected.map(({ node }) => node.name));
  const present = new Set(cluster.nodes.map(({ name }) => name));
  const daemons = daemonPods.flatMap((pod) => {
    const node = onlyNodeOf(pod);
    return node !== undefined && present.has(node) && !complete.has(node) ? [{ pod, node }] : [];
  });
  return { pending, daemons: daemons.filter(({ pod }) => !pod.isTerminating) };
}

/** The DaemonSet controller selects the node by its name. */
function onlyNodeOf({ nodeAffinity }: Pod): string | undefined {
  const field = nodeAffinity?.terms[0]?.fields.find((one) => one.field === 'metadata.name');
  return field?.isEqual === true ? field.value : undefined;
}

interface Assigned {
  readonly cluster: Snapshot;
  readonly placed: readonly Placement[];
  readonly waiting: readonly Pod[];
}

/**
 * Places pods on the machines that were requested for them. Packing them anew might need one more machine than the plan
 * that requested these.
 */
function placeAssigned(
  cluster: Snapshot,
  pending: readonly Pod[],
  { input, expected }: { readonly input: ScalingInput; readonly expected: readonly ExpectedNode[] },
): Assigned {
  const { assignments } = input.memory;
  if (Object.keys(assignments).length === 0) return { cluster, placed: [], waiting: pending };
  const nodeOf = new Map<string, string>(
    input.machines.flatMap(({ id, node }) =>
      node === undefined ? [] : [[id, node.name] as const],
    ),
  );
  for (const { machine, node } of expected) nodeOf.set(machine.id, node.name);
  const places = new Map(
    Object.entries(assignments).flatMap(([machine, uids]) => {
      const node = nodeOf.get(machine);
      return node === undefined ? [] : uids.map((uid) => [uid, node] as const);
    }),
  );
  const wanted = pending.toSorted(comparePods).flatMap((pod) => {
    const node = places.get(pod.uid);
    return node === undefined || !isSchedulable(pod) ? [] : [{ pod, node }];
  });
  const { snapshot, placed } = withFittingPods(cluster, wanted);
  const done = new Set(placed.map(({ pod }) => pod));
  return { cluster: snapshot, placed, waiting: pending.filter((pod) => !done.has(pod)) };
}

function isSchedulable(pod: Pod): boolean {
  return !pod.isGated && !pod.isTerminating && !pod.isFinished && pod.nominatedNodeName === '';
}

export function comparePods(left: Pod, right: Pod): number {
  if (left.namespace !== right.namespace) return podKey(left) < podKey(right) ? -1 : 1;
  if (left.name !== right.name) return left.name < right.name ? -1 : 1;
  return left.uid < right.uid ? -1 : 1;
}

function isTooNew({ createdAt }: Pod, { now, settings }: ScalingInput): boolean {
  return settings.newPodDelayMs > 0 && now - createdAt < settings.newPodDelayMs;
}

function placeTooNew(
  cluster: Snapshot,
  pods: readonly Pod[],
  { settings }: ScalingInput,
): { readonly cluster: Snapshot; readonly placed: readonly Placement[] } {
  if (pods.length === 0) return { cluster, placed: [] };
  const { existing } = pack(cluster, pods, {
    pools: [],
    expendableBelow: settings.expendablePriority,
  });
  return { cluster: withPods(cluster, existing), placed: existing };
}

interface PackRequest {
  readonly cluster: Snapshot;
  readonly pods: readonly Pod[];
}

const NOTHING_PACKED: Packing = {
  machines: [],
  existing: [],
  steps: [],
  lateDaemonPods: [],
  unplaced: [],
  skipped: [],
};

export function packPods(
  input: ScalingInput,
  states: ReadonlyMap<string, PoolState>,
  { cluster, pods }: PackRequest,
): Packing {
  if (pods.length === 0) return NOTHING_PACKED;
  const merged = packOnMergedHosts(input, states, { cluster, pods });
  if (merged !== undefined) return merged;
  const packHosts = (orderOf: HostOrder): Packing =>
    packOnHosts(input, states, { cluster, pods, orderOf });
  let best = packHosts(NO_ORDER);
  const tryOrder = (orderOf: HostOrder): void => {
    const other = packHosts(orderOf);
    if (other.unplaced.length < best.unplaced.length) best = other;
  };
  // A pool may have filled hosts that another one depends on, although it can use others.
  if (best.unplaced.some(isHostFull) && new Set(input.hosts.map(countPools)).size > 1)
    tryOrder(countPools);
  if (best.machines.length === 0) return best;
  // Pods may have got machines on hosts on which others must run beside them, but cannot, or which they keep others off.
  const most = Math.floor(MAX_PREFERRED_PODS / pods.length);
  for (const preferred of input.hosts.slice(0, Math.min(most, MAX_PREFERRED_HOSTS))) {
    if (!best.unplaced.some(isExcludedByAffinity)) break;
    tryOrder((host) => (host === preferred ? 0 : 1));
  }
  return best;
}

const NO_ORDER: HostOrder = () => 0;

/** How many hosts are preferred, one after the other, for pods that others must run beside; and for how many pods in all. */
const MAX_PREFERRED_HOSTS = 8;
const MAX_PREFERRED_PODS = 5_000;

function isExcludedByAffinity({ refusals }: UnplacedPod): boolean {
  return refusals.some(({ reasons }) =>
    reasons.some((one) => one.filter === 'InterPodAffinity' && HOST_LABELS.has(one.topologyKey)),
  );
}

/** Whether a machine would help, but no host has capacity for it. */
function isHostFull({ refusals }: UnplacedPod): boolean {
  return refusals.some(({ pool, limit }) => limit !== undefined && limit.of !== pool);
}

/** How often the limits of hosts are tightened before machines are left out instead. */
const MAX_ROUNDS = 4;

/**
 * Pools may have different rules for one host (reserve, overcommit): then a host may be full for one pool because of
 * machines of another, and the pods are packed again with that limit.
 */
function packOnHosts(
  input: ScalingInput,
  states: ReadonlyMap<string, PoolState>,
  { cluster, pods, orderOf }: PackRequest & { readonly orderOf: HostOrder },
): Packing {
  let limits: HostLimits = new Map();
  const packWithin = (hostLimits: HostLimits): Packing =>
    pack(cluster, pods, {
      pools: poolOffers(input, states, { limits: hostLimits, orderOf }),
      expendableBelow: input.settings.expendablePriority,
      domainLimits: sharedHostLimits(input),
    });
  let packing = packWithin(limits);
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const tighter = findOverfullHosts(input, packing.machines);
    if (tighter.size === 0) return packing;
    limits = new Map([...limits, ...tighter]);
    packing = packWithin(limits);
  }
  return withoutOverfullHosts(input, packing);
}

/** Undefined when hosts have to be told apart: for pods that depend on them, or because they are nearly full. */
function packOnMergedHosts(
  input: ScalingInput,
  states: ReadonlyMap<string, PoolState>,
  { cluster, pods }: PackRequest,
): Packing | undefined {
  if (pods.some(isHostRelevant) || hasHostAntiAffinity(cluster)) return undefined;
  const merged = mergeHosts(input);
  const packing = pack(cluster, pods, {
    pools: poolOffers(input, states, { merged }),
    expendableBelow: input.settings.expendablePriority,
    domainLimits: merged.limits,
  });
  const isLimited = packing.unplaced.some(isHostFull);
  return isLimited || !merged.isEnoughFor(packing.machines) ? undefined : packing;
}

/**
 * Leaves out the machines that a pool adds by the next decision, a second later. Their pods do not go to other pools now: these
 * may be more expensive, or of a lower priority.
 */
function limitToBatches(packing: Packing, states: ReadonlyMap<string, PoolState>): Packing {
  const counts = new Map<string, number>();
  const machines: PlannedMachine[] = [];
  const unplaced: UnplacedPod[] = [];
  for (const machine of packing.machines) {
    const { pool, domain, pods } = machine;
    const count = (counts.get(pool) ?? 0) + 1;
    counts.set(pool, count);
    const allowed = states.get(pool)?.batch.machines ?? Infinity;
    if (count <= allowed) {
      machines.push(machine);
      continue;
    }
    const limit: LimitHit = { of: pool, limit: 'machines', allowed, used: allowed, adding: 1 };
    const refusals = [{ pool, domain, reasons: [], limit }];
    unplaced.push(...pods.map((pod) => ({ pod, refusals })));
  }
  if (unplaced.length === 0) return packing;
  return { ...packing, machines, unplaced: [...packing.unplaced, ...unplaced] };
}

/** Leaves out the machines of the hosts that are still too full; the next decision tries again. */
function withoutOverfullHosts(input: ScalingInput, packing: Packing): Packing {
  const overfull = findOverfullHosts(input, packing.machines);
  const isOver = ({ pool, domain }: PlannedMachine): boolean =>
    overfull.has(hostLimitKey(pool, domain));
  const left = packing.machines
    .filter(isOver)
    .flatMap(({ pods, pool, domain }) =>
      pods.map((pod) => ({ pod, refusals: [{ pool, domain, reasons: [], limit: FULL_HOST }] })),
    );
  return {
    ...packing,
    machines: packing.machines.filter((machine) => !isOver(machine)),
    unplaced: [...packing.unplaced, ...left],
  };
}

const FULL_HOST: LimitHit = { of: '', limit: 'machines', allowed: 0, used: 0, adding: 1 };

/** Limits of pools on hosts that machines of other pools have filled. */
function findOverfullHosts(
  { hosts, pools }: ScalingInput,
  machines: readonly PlannedMachine[],
): HostLimits {
  const overhead = new Map(
    pools.map(({ config }) => [config.name, config.memoryOverheadBytes] as const),
  );
  const byHost = Map.groupBy(machines, ({ domain }) => domain);
  const found = new Map<string, { cpuMilli: number; memoryBytes: number; diskBytes: number }>();
  for (const host of hosts) {
    const placed = byHost.get(hostKey(host)) ?? [];
    const used = new Set(placed.map(({ pool }) => pool));
    if (used.size < 2) continue;
    for (const pool of used) {
      const capacity = host.pools[pool];
      if (capacity === undefined) continue;
      const sum = (ones: readonly PlannedMachine[]) =>
        ones.reduce(
          (total, { pool: owner, size }) => ({
            cpuMilli: total.cpuMilli + size.capacity.cpuMilli,
            memoryBytes: total.memoryBytes + size.capacity.memoryBytes + (overhead.get(owner) ?? 0),
            diskBytes: total.diskBytes + size.capacity.ephemeralStorageBytes,
          }),
          { cpuMilli: 0, memoryBytes: 0, diskBytes: 0 },
        );
      const total = sum(placed);
      const others = sum(placed.filter((one) => one.pool !== pool));
      const isOver =
        total.cpuMilli > capacity.cpus * 1_000 ||
        total.memoryBytes > capacity.memoryBytes ||
        total.diskBytes > capacity.diskBytes;
      if (!isOver) continue;
      found.set(hostLimitKey(pool, hostKey(host)), {
        cpuMilli: Math.max(0, capacity.cpus * 1_000 - others.cpuMilli),
        memoryBytes: Math.max(0, capacity.memoryBytes - others.memoryBytes),
        diskBytes: Math.max(0, capacity.diskBytes - others.diskBytes),
      });
    }
  }
  return found;
}

/** Pods of a planned machine that are not placeholders. */
export function podsOfMachine({ pods }: PlannedMachine): readonly Pod[] {
  return pods.filter((pod) => !isPlaceholder(pod));
}
