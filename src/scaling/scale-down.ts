// SPDX-License-Identifier: Apache-2.0
// Which machines can be removed? A machine is unneeded when it is underutilized and all its pods fit on other nodes,
// together with the pods of all other unneeded machines, while those nodes are still there. One that has been unneeded for
// long enough is drained.

import { formatAge, formatCount } from '../model/format-text.ts';
import type { Node } from '../model/node.ts';
import { podKey } from '../model/pod.ts';
import {
  type DrainAttempt,
  type Snapshot,
  simulateDrains,
  withNodes,
} from '../scheduling/index.ts';
import { nameOf } from './describe.ts';
import {
  type EvictionContext,
  findEvictionBlock,
  findMoveBlock,
  RemainingBudgets,
} from './eviction-rules.ts';
import { findLeavingNodes, isReady, isStaying } from './expected-nodes.ts';
import { failedRemovalRefusal } from './failed-removals.ts';
import { isPlaceholder } from './headroom.ts';
import { HeadroomCheck } from './headroom-check.ts';
import type { ScalingInput, ScalingMachine, ScalingNode } from './input.ts';
import type { ScalingMemory } from './memory.ts';
import type { DrainStep, PlannedMove, Refusal } from './plan.ts';
import type { PoolState } from './pool-offers.ts';
import { PoolQuotas } from './pool-quotas.ts';
import {
  annotationRefusal,
  blockRefusal,
  type Candidate,
  delayRefusal,
  drainReason,
  others,
  percentOf,
  type Refused,
  replacingRefusal,
  utilizationRefusal,
} from './removal-candidate.ts';
import { findReplacementWait, sortForRemoval, waitingRefusal } from './removal-order.ts';
import { comparePods, type ScaleUp } from './scale-up.ts';
import { findRisky } from './scheduling-risk.ts';
import { utilizationOf } from './utilization.ts';

export interface ScaleDown {
  readonly steps: readonly DrainStep[];
  readonly refusals: readonly Refusal[];
  readonly unneededSince: ScalingMemory['unneededSince'];
  /** Underutilized machines whose pods may be evicted. */
  readonly evictable: readonly Candidate[];
  /** When a machine will have been unneeded for long enough, or a delay ends. */
  readonly nextAt: number | undefined;
}

type Machine = ScalingMachine & { readonly node: ScalingNode };

/** Checks per machine when its pods do not fit one by one: few for a thousand machines, more for those to be drained. */
const JUDGEMENT_CHECKS = 100;
const SELECTION_CHECKS = 2_000;
/** How often machines are selected again, without those found to be risky. */
const MAX_SELECTIONS = 20;

interface Selected {
  readonly candidate: Candidate;
  readonly attempt: DrainAttempt;
}

export function scaleDown(
  input: ScalingInput,
  states: ReadonlyMap<string, PoolState>,
  up: ScaleUp,
): ScaleDown {
  return new ScaleDownDecision(input, states, up).decide();
}

class ScaleDownDecision {
  readonly #input: ScalingInput;
  readonly #states: ReadonlyMap<string, PoolState>;
  readonly #up: ScaleUp;
  readonly #refusals: Refusal[] = [];
  readonly #unneededSince: Record<string, number> = {};
  readonly #evictable: Candidate[] = [];
  readonly #unready: ReadonlySet<string>;
  /** Nodes that must not get pods: not proven to work, or being removed. */
  readonly #unusable: ReadonlySet<string>;
  /** Topology spread counts nodes that are being removed until they are deleted. */
  readonly #cluster: Snapshot;
  /** How many nodes may get pods. Counted once: a snapshot must not be read during a simulation. */
  readonly #usableNodes: number;
  readonly #budgets: RemainingBudgets;
  #nextAt: number | undefined;

  constructor(input: ScalingInput, states: ReadonlyMap<string, PoolState>, up: ScaleUp) {
    this.#input = input;
    this.#states = states;
    this.#up = up;
    this.#unready = new Set(input.unreadyNodes);
    const leaving = findLeavingNodes(input);
    this.#unusable = new Set([
      ...input.unreadyNodes,
      ...[...up.expected.map(({ node }) => node), ...leaving].map(({ name }) => name),
    ]);
    this.#cluster = leaving.length === 0 ? up.cluster : withNodes(up.cluster, leaving);
    this.#usableNodes = this.#cluster.nodes.filter(({ name }) => !this.#unusable.has(name)).length;
    this.#budgets = new RemainingBudgets(input.disruptionBudgets);
  }

  decide(): ScaleDown {
    const candidates = sortForRemoval(this.#findCandidates(), this.#input.memory);
    const unneeded = this.#judge(candidates);
    const due = this.#findDue(unneeded);
    const steps = this.#blockedByCluster(due) ? [] : this.#selectSafe(due);
    return {
      steps,
      refusals: this.#refusals,
      unneededSince: this.#unneededSince,
      evictable: this.#evictable,
      nextAt: this.#nextAt,
    };
  }

  #refuse(node: string, { code, reason, facts, until }: Refused): void {
    this.#refusals.push({
      subject: { kind: 'node', name: node },
      code,
      reason,
      facts: facts ?? {},
    });
    this.#wakeAt(until);
  }

  #wakeAt(at: number | undefined): void {
    if (at === undefined || at <= this.#input.now) return;
    this.#nextAt = Math.min(this.#nextAt ?? Infinity, at);
  }

  // Candidates

  #findCandidates(): readonly Candidate[] {
    const cluster = this.#cluster;
    const nodes = new Map(cluster.nodes.map((node) => [node.name, node]));
    const found = this.#input.machines.flatMap((machine) => {
      const state = this.#states.get(machine.pool);
      if (state === undefined || !isStaying(machine) || !hasNode(machine)) return [];
      const node = nodes.get(machine.node.name);
      if (node === undefined || !isReady(machine)) return [];
      const utilization = utilizationOf(node, cluster.podsOn(node.name), state.pool.config);
      const candidate = { machine, node, state, utilization };
      const refused = this.#refusalOf(machine, candidate);
      if (refused === undefined) return [candidate];
      this.#refuse(node.name, refused);
      return [];
    });
    // Read in one go: changing between two snapshots costs as much as their difference.
    const { snapshot } = this.#input;
    return found.map((one) => ({ ...one, pods: snapshot.podsOn(one.node.name) }));
  }

  /** Why the machine is needed, without a simulation. */
  #refusalOf(machine: Machine, candidate: Omit<Candidate, 'pods'>): Refused | undefined {
    const { pool } = candidate.state;
    const name = machine.node.name;
    if (pool.config.scaleDown.when === 'never')
      return {
        code: 'NodePoolNeverScalesDown',
        reason: `pool ${machine.pool} has scaleDown.when: never`,
      };
    if (!machine.node.isReady || this.#unready.has(name))
      return { code: 'NodeUnready', reason: `node ${name} is not Ready` };
    const region = machine.placement?.region ?? '';
    const unread = this.#input.unreadRegions?.[region];
    if (unread !== undefined)
      return {
        code: 'NodeRegionUnread',
        reason: `node ${name} is kept: region ${region} cannot be read: ${unread}`,
      };
    return (
      annotationRefusal(machine.node) ??
      replacingRefusal(machine, this.#input.memory.replacement) ??
      utilizationRefusal(candidate) ??
      this.#neededByPending(machine)
    );
  }

  #isReplaced({ id }: ScalingMachine): boolean {
    return this.#input.memory.replacement?.replaced.includes(id) === true;
  }

  #neededByPending({ id, node }: Machine): Refused | undefined {
    const assigned = new Set(this.#input.memory.assignments[id] ?? []);
    if (assigned.size === 0) return undefined;
    const waiting = this.#up.placements.filter(
      (one) => one.node === node.name && assigned.has(one.pod.uid),
    );
    const [first] = waiting;
    if (first === undefined) return undefined;
    return {
      code: 'NodeNeededByPending',
      reason: `node ${node.name} was created for ${formatCount(waiting.length, 'pod')} that will be scheduled, such as ${podKey(first.pod)}`,
      facts: { pods: waiting.length },
    };
  }

  // Judgement: which candidates are unneeded, all together?

  #judge(candidates: readonly Candidate[]): readonly Candidate[] {
    return simulateDrains(
      this.#cluster,
      this.#drainOptions(this.#unusable, JUDGEMENT_CHECKS),
      (tryDrain) =>
        candidates.filter((candidate) => {
          const { node, pods, machine } = candidate;
          const block = findEvictionBlock(pods, this.#rulesFor(candidate));
          const refused =
            block === undefined
              ? failedRemovalRefusal(candidate, this.#input)
              : blockRefusal(node, block, 'is kept');
          if (refused !== undefined) {
            this.#refuse(node.name, refused);
            return false;
          }
          this.#evictable.push(candidate);
          const attempt = tryDrain(node.name);
          if (attempt.isPossible) this.#unneededSince[machine.id] = this.#unneededSinceOf(machine);
          // A machine of a replacement need not be removable beside all others: its turn comes when it is selected.
          else if (!this.#isReplaced(machine))
            this.#refuse(node.name, this.#nowhereRefusal(node, attempt));
          return attempt.isPossible || this.#isReplaced(machine);
        }),
    );
  }

  #unneededSinceOf({ id }: ScalingMachine): number {
    const { memory, now } = this.#input;
    // A clock that was set back.
    return Math.min(memory.unneededSince[id] ?? now, now);
  }

  #rulesFor({ state }: Candidate, budgets = this.#budgets): EvictionContext {
    return {
      scaleDown: state.pool.config.scaleDown,
      expendablePriority: this.#input.settings.expendablePriority,
      budgets,
    };
  }

  #drainOptions(avoid: ReadonlySet<string>, maxChecks: number) {
    return { expendableBelow: this.#input.settings.expendablePriority, avoid, maxChecks };
  }

  // Selection: which of them are removed now?

  /** Those that have been unneeded for long enough. */
  #findDue(unneeded: readonly Candidate[]): readonly Candidate[] {
    const { now } = this.#input;
    const waitsFor = findReplacementWait(this.#input, this.#up);
    return unneeded.filter(({ machine, node, state }) => {
      if (this.#isReplaced(machine)) {
        if (waitsFor !== undefined) this.#refuse(node.name, waitingRefusal(node, waitsFor));
        return waitsFor === undefined;
      }
      const { unneededTimeMs } = state.pool.config.scaleDown;
      const since = this.#unneededSince[machine.id] ?? now;
      const until = since + unneededTimeMs;
      if (until <= now) return true;
      this.#refuse(node.name, {
        code: 'NodeUnneededTooShort',
        reason:
          since === now
            ? `node ${node.name} is unneeded now, and is removed when it has been for ${formatAge(unneededTimeMs)}`
            : `node ${node.name} has been unneeded for ${formatAge(now - since)}, of ${formatAge(unneededTimeMs)}`,
        facts: { unneededMs: now - since, unneededTimeMs },
        until,
      });
      return false;
    });
  }

  /** Whether nothing may be removed now. */
  #blockedByCluster(due: readonly Candidate[]): boolean {
    const { unreadyNodes, snapshot, settings } = this.#input;
    const { maxTotalUnreadyPercentage, okTotalUnreadyCount } = settings.guards;
    const total = snapshot.nodes.length;
    const unready = unreadyNodes.length;
    const percentage = total === 0 ? 0 : (unready * 100) / total;
    if (unready > okTotalUnreadyCount && percentage > maxTotalUnreadyPercentage) {
      this.#refusals.push({
        subject: { kind: 'cluster', name: '' },
        code: 'TooManyUnready',
        reason: `no machine is removed while ${unready} of ${total} nodes are not Ready: more than ${okTotalUnreadyCount} and ${maxTotalUnreadyPercentage} %`,
        facts: { unready, total, maxTotalUnreadyPercentage, okTotalUnreadyCount },
      });
      return true;
    }
    if (this.#up.machines.length === 0) return false;
    for (const { node } of due)
      this.#refuse(node.name, {
        code: 'NodeRemovalWaits',
        reason: `node ${node.name} is kept while ${formatCount(this.#up.machines.length, 'machine')} must be added`,
      });
    return true;
  }

  /** `failed`: machines of a replacement that others may take the place of. */
  #select(due: readonly Candidate[]) {
    const quotas = new PoolQuotas(this.#input);
    const batch = new PoolQuotas(this.#input);
    const failed = new Map<string, Refused>();
    const budgets = this.#budgets.fresh();
    const { snapshot } = this.#input;
    for (const { name } of findLeavingNodes(this.#input)) budgets.use(snapshot.podsOn(name));
    // Pods may be scheduled to a node that becomes ready while they are evicted.
    const soon = new Set(this.#up.expected.map(({ node }) => node.name));
    const never = this.#unusable.difference(soon);
    const headroom = new HeadroomCheck(this.#cluster, this.#drainOptions(never, SELECTION_CHECKS));
    const allowed = due.filter((candidate) => {
      const refused =
        delayRefusal(candidate, this.#input.now) ??
        batch.refusalOf(candidate) ??
        headroom.limitedRefusalOf(candidate);
      if (refused !== undefined) this.#refuse(candidate.node.name, refused);
      // Those that are drained later may get pods meanwhile, as in the simulation.
      else if (this.#isReplaced(candidate.machine)) batch.use(candidate);
      return refused === undefined;
    });
    // Pods must not move to a node that is removed next.
    const avoid = new Set([...this.#unusable, ...allowed.map(({ node }) => node.name)]);
    const options = {
      ...this.#drainOptions(avoid, SELECTION_CHECKS),
      // What was simulated is repeated: other places for the first pods may leave none for the last ones.
      asScheduled: this.#input.memory.replacement !== undefined,
    };
    const labels = new Map(this.#cluster.nodes.map((node) => [node.name, node.labels]));
    const selected = simulateDrains(this.#cluster, options, (tryDrain) =>
      allowed.flatMap((candidate) => {
        const { node } = candidate;
        const outcome = this.#trySelect(candidate, { quotas, budgets, tryDrain, labels });
        if ('code' in outcome) {
          avoid.delete(node.name);
          if (this.#isReplaced(candidate.machine)) failed.set(node.name, outcome);
          else this.#refuse(node.name, outcome);
          return [];
        }
        quotas.use(candidate);
        budgets.use(candidate.pods);
        return [{ candidate, attempt: outcome }];
      }),
    );
    const removed: Selected[] = [];
    for (const one of selected) {
      const before = removed.map(({ candidate }) => candidate);
      const refused = headroom.refusalOf(one.candidate, before);
      if (refused === undefined) removed.push(one);
      else this.#refuse(one.candidate.node.name, refused);
    }
    return { selected: removed, failed };
  }

  /** The first machines whose pods find a node where kube-scheduler would place them, too. */
  #selectSafe(due: readonly Candidate[]): readonly DrainStep[] {
    const known = this.#refusals.length;
    const risky = new Map<string, Refused>();
    for (let round = 1; ; round += 1) {
      const { selected, failed } = this.#select(due.filter(({ node }) => !risky.has(node.name)));
      const waiting = findRisky(
        selected.map(({ candidate }) => candidate.node.name),
        this.#cluster,
        this.#drainOptions(this.#unusable, 0),
      );
      const found = new Map([...failed, ...waiting]);
      for (const [name, refused] of found) risky.set(name, refused);
      if (found.size === 0 || round === MAX_SELECTIONS) {
        for (const [name, refused] of risky) this.#refuse(name, refused);
        return selected
          .filter(({ candidate }) => !found.has(candidate.node.name))
          .map(({ candidate, attempt }) => this.#stepFor(candidate, attempt));
      }
      // Others take the place of the risky ones: why they were refused beside them does not matter.
      this.#refusals.length = known;
    }
  }

  #trySelect(
    candidate: Candidate,
    {
      quotas,
      budgets,
      tryDrain,
      labels,
    }: {
      readonly quotas: PoolQuotas;
      readonly budgets: RemainingBudgets;
      readonly tryDrain: (node: string) => DrainAttempt;
      readonly labels: ReadonlyMap<string, Node['labels']>;
    },
  ): DrainAttempt | Refused {
    const { node, pods } = candidate;
    const full = quotas.refusalOf(candidate);
    if (full !== undefined) return full;
    const block = findEvictionBlock(pods, this.#rulesFor(candidate, budgets));
    if (block !== undefined) return blockRefusal(node, block, 'is kept, beside the other removals');
    const attempt = tryDrain(node.name);
    if (!attempt.isPossible) return this.#nowhereRefusal(node, attempt);
    const stuck = findMoveBlock(pods, this.#rulesFor(candidate, budgets), (key) =>
      attempt.moves.every(({ to }) => labels.get(to)?.[key] === node.labels[key]),
    );
    return stuck === undefined ? attempt : blockRefusal(node, stuck, 'is kept');
  }

  #nowhereRefusal({ name }: Node, { left }: DrainAttempt): Refused {
    const [first] = left.filter((pod) => !isPlaceholder(pod)).toSorted(comparePods);
    if (first === undefined)
      return { code: 'NodeKeptAsHeadroom', reason: `node ${name} is kept as headroom of its pool` };
    const nodes = this.#usableNodes - 1;
    return {
      code: 'NodePodsFitNowhere',
      reason: `node ${name} is needed: pod ${podKey(first)}${others(left.length - 1)} would fit on none of ${formatCount(nodes, 'other node')}, beside other removals and pending pods`,
      facts: { pod: podKey(first), pods: left.length, nodes },
    };
  }

  #stepFor(candidate: Candidate, { moves }: DrainAttempt): DrainStep {
    const { machine, node, utilization } = candidate;
    // Pods that would be placed here later need not be evicted.
    const uids = new Set(candidate.pods.map(({ uid }) => uid));
    const planned = moves
      .filter(({ pod }) => uids.has(pod.uid))
      .map(({ pod, to }): PlannedMove => ({ pod: nameOf(pod), to }));
    const unneededMs = this.#input.now - (this.#unneededSince[machine.id] ?? this.#input.now);
    return {
      kind: 'drain',
      pool: machine.pool,
      machine: machine.id,
      node: node.name,
      moves: planned,
      reason: drainReason(candidate, {
        planned,
        unneededMs,
        isReplaced: this.#isReplaced(machine),
      }),
      facts: {
        unneededMs,
        cpuPercent: percentOf(utilization.cpu),
        memoryPercent: percentOf(utilization.memory),
        pods: planned.length,
      },
    };
  }
}

function hasNode(machine: ScalingMachine): machine is Machine {
  return machine.node !== undefined;
}
