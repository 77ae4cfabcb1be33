// SPDX-License-Identifier: Apache-2.0
// May the pods of a node be evicted? The rules and defaults of the Cluster Autoscaler, in its order; see
// docs/guides/scale-down.md for the table.

import type { PoolConfig } from '../config/types/index.ts';
import { coversPod, type DisruptionBudget } from '../model/disruption-budget.ts';
import { DRAIN_TAINT } from '../model/drain.ts';
import { formatCount } from '../model/format-text.ts';
import { isDaemonSetPod, type Pod, podKey } from '../model/pod.ts';
import { matchesSelector } from '../model/selector.ts';
import { findUntoleratedTaint, type Taint } from '../model/taints.ts';

export interface EvictionBlock {
  readonly pod: Pod;
  readonly code: EvictionBlockCode;
  readonly reason: string;
}

export type EvictionBlockCode =
  | 'DoNotDisrupt'
  | 'NotReplicated'
  | 'KubeSystem'
  | 'NotSafeToEvict'
  | 'LocalStorage'
  | 'ToleratesDrain'
  | 'DisruptionBudget';

export interface EvictionContext {
  readonly scaleDown: Pick<
    PoolConfig['scaleDown'],
    'skipLocalStorage' | 'skipSystemPods' | 'skipCustomControllers'
  >;
  /** Pods of lower priority block only where they could not be evicted for good. */
  readonly expendablePriority: number;
  readonly budgets: RemainingBudgets;
}

/** Pods that are not evicted: they end with their node, or are on their way out already. */
export function isLeftOnNode(pod: Pod): boolean {
  return pod.isMirror || isDaemonSetPod(pod) || pod.isTerminating || pod.isFinished;
}

/** The first pod that may not be evicted. */
export function findEvictionBlock(
  pods: readonly Pod[],
  context: EvictionContext,
): EvictionBlock | undefined {
  const leaving = pods.filter((pod) => !isLeftOnNode(pod));
  for (const pod of leaving) {
    const isHostname = (topologyKey: string): boolean => topologyKey === HOSTNAME;
    const block =
      blockOf(pod, context) ?? blockOfGroup(pod, leaving, { context, isLeft: isHostname });
    if (block !== undefined) return block;
  }
  return context.budgets.findExceeded(leaving);
}

const HOSTNAME = 'kubernetes.io/hostname';

/** The first pod that may not be evicted before others, because they would move to another zone together. */
export function findMoveBlock(
  pods: readonly Pod[],
  context: EvictionContext,
  /** Whether no pod moves to a node with another value of the label. */
  staysIn: (topologyKey: string) => boolean,
): EvictionBlock | undefined {
  const leaving = pods.filter((pod) => !isLeftOnNode(pod));
  for (const pod of leaving) {
    const block = blockOfGroup(pod, leaving, { context, isLeft: (key) => !staysIn(key) });
    if (block !== undefined) return block;
  }
  return undefined;
}

/**
 * Pods that must run in the domain of the others find no node in another one, one after the other. If a budget does not allow to evict
 * them all, the first one would wait for the rest.
 */
function blockOfGroup(
  pod: Pod,
  leaving: readonly Pod[],
  {
    context: { budgets },
    isLeft,
  }: { readonly context: EvictionContext; readonly isLeft: (topologyKey: string) => boolean },
): EvictionBlock | undefined {
  const terms = pod.affinity.filter(({ topologyKey }) => isLeft(topologyKey));
  const selects = (one: Pod): boolean =>
    terms.some(
      ({ namespaces, selector }) =>
        namespaces.includes(one.namespace) && matchesSelector(selector, one.labels),
    );
  if (!selects(pod)) return undefined;
  const reason = budgets.findBlockingGroup(leaving.filter(selects));
  return reason === undefined ? undefined : { pod, code: 'DisruptionBudget', reason };
}

const REPLICATED_KINDS: ReadonlySet<string> = new Set([
  'ReplicationController',
  'ReplicaSet',
  'StatefulSet',
  'Job',
]);

/** The taints of a node that is being drained. */
const DRAINED: readonly Taint[] = [
  DRAIN_TAINT,
  { key: 'node.kubernetes.io/unschedulable', value: '', effect: 'NoSchedule' },
];

function blockOf(pod: Pod, context: EvictionContext): EvictionBlock | undefined {
  const name = podKey(pod);
  const block = (code: EvictionBlockCode, reason: string): EvictionBlock => ({ pod, code, reason });
  if (pod.eviction?.doNotDisrupt === true)
    return block('DoNotDisrupt', `pod ${name} has annotation karpenter.sh/do-not-disrupt`);
  const isExpendable = pod.priority < context.expendablePriority;
  if (!isExpendable && pod.eviction?.safeToEvict !== true) {
    const found = ownBlock(pod, context);
    if (found !== undefined) return block(...found);
  }
  if (findUntoleratedTaint(DRAINED, pod.tolerations) === undefined)
    return block(
      'ToleratesDrain',
      `pod ${name} tolerates every taint, so the scheduler might place its replacement on the same node`,
    );
  const budget = context.budgets.findBlocking(pod);
  return budget === undefined ? undefined : block('DisruptionBudget', budget);
}

/** What a low priority and the annotation `safe-to-evict: "true"` override. */
function ownBlock(
  pod: Pod,
  { scaleDown, budgets }: EvictionContext,
): readonly [EvictionBlockCode, string] | undefined {
  const name = podKey(pod);
  const unreplicated = unreplicatedReason(pod, scaleDown.skipCustomControllers);
  if (unreplicated !== undefined) return ['NotReplicated', `pod ${name} ${unreplicated}`];
  if (scaleDown.skipSystemPods && pod.namespace === 'kube-system' && !budgets.isCovered(pod))
    return ['KubeSystem', `pod ${name} is in kube-system and has no PodDisruptionBudget`];
  if (pod.eviction?.safeToEvict === false)
    return ['NotSafeToEvict', `pod ${name} has annotation safe-to-evict: "false"`];
  const volumes = pod.eviction?.localVolumes ?? [];
  if (scaleDown.skipLocalStorage && volumes.length > 0)
    return ['LocalStorage', `pod ${name} has local storage: ${volumes.join(', ')}`];
  return undefined;
}

function unreplicatedReason({ controller }: Pod, skipsCustom: boolean): string | undefined {
  if (controller === undefined) return 'has no controller that would replace it';
  if (skipsCustom && !REPLICATED_KINDS.has(controller.kind))
    return `is controlled by a ${controller.kind}, which may not replace it`;
  return undefined;
}

/** How many disruptions are left of each PodDisruptionBudget, after the removals of this plan. */
export class RemainingBudgets {
  readonly #budgets: readonly DisruptionBudget[];
  readonly #byNamespace: ReadonlyMap<string, readonly DisruptionBudget[]>;
  readonly #used = new Map<DisruptionBudget, number>();
  readonly #covering = new WeakMap<Pod, readonly DisruptionBudget[]>();

  constructor(budgets: readonly DisruptionBudget[]) {
    this.#budgets = budgets;
    this.#byNamespace = Map.groupBy(budgets, ({ namespace }) => namespace);
  }

  /** The same budgets, unused. */
  fresh(): RemainingBudgets {
    return new RemainingBudgets(this.#budgets);
  }

  isCovered(pod: Pod): boolean {
    return this.#coveringOf(pod).length > 0;
  }

  /** Why the pod may not be evicted now. */
  findBlocking(pod: Pod): string | undefined {
    const covering = this.#coveringOf(pod);
    if (covering.length > 1) {
      const names = covering.map(({ name }) => name).join(', ');
      return `pod ${podKey(pod)} has several PodDisruptionBudgets (${names}), and the API evicts no such pod`;
    }
    for (const budget of covering) {
      const left = this.#leftOf(budget);
      if (left < 1)
        return `PodDisruptionBudget ${podKey(budget)} allows ${left} more disruptions of pod ${podKey(pod)}`;
    }
    return undefined;
  }

  /**
   * The first of these pods, all of one node, if they need more of a budget than other removals leave. Without other removals
   * they are evicted one after the other, as the budget allows it again.
   */
  findExceeded(pods: readonly Pod[]): EvictionBlock | undefined {
    for (const budget of new Set(pods.flatMap((pod) => this.#coveringOf(pod)))) {
      if (!this.#used.has(budget)) continue;
      const covered = pods.filter((pod) => this.#coveringOf(pod).includes(budget));
      const left = this.#leftOf(budget);
      const [pod] = covered;
      if (pod === undefined || left >= covered.length) continue;
      const reason = `PodDisruptionBudget ${podKey(budget)} allows ${left} more disruptions of ${formatCount(covered.length, 'pod')}, beside those of other removals`;
      return { pod, code: 'DisruptionBudget', reason };
    }
    return undefined;
  }

  /** Why these pods may not all be evicted now. */
  findBlockingGroup(pods: readonly Pod[]): string | undefined {
    for (const budget of new Set(pods.flatMap((pod) => this.#coveringOf(pod)))) {
      const covered = pods.filter((pod) => this.#coveringOf(pod).includes(budget)).length;
      const left = this.#leftOf(budget);
      if (left < covered)
        return `PodDisruptionBudget ${podKey(budget)} allows ${left} more disruptions of ${covered} pods that must run together, so that the first ones evicted would wait for the others`;
    }
    return undefined;
  }

  /** Counts the evictions of these pods. */
  use(pods: readonly Pod[]): void {
    for (const pod of pods) {
      if (isLeftOnNode(pod)) continue;
      for (const budget of this.#coveringOf(pod))
        this.#used.set(budget, (this.#used.get(budget) ?? 0) + 1);
    }
  }

  #leftOf(budget: DisruptionBudget): number {
    return Math.max(0, budget.disruptionsAllowed - (this.#used.get(budget) ?? 0));
  }

  #coveringOf(pod: Pod): readonly DisruptionBudget[] {
    const inNamespace = this.#byNamespace.get(pod.namespace);
    if (inNamespace === undefined) return [];
    const known = this.#covering.get(pod);
    if (known !== undefined) return known;
    const covering = inNamespace.filter((budget) => coversPod(budget, pod));
    this.#covering.set(pod, covering);
    return covering;
  }
}
