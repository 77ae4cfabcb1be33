// SPDX-License-Identifier: Apache-2.0
// A machine that may be removed, how much of it is used, and the texts about it.

import { formatAge, formatCount } from '../model/format-text.ts';
import type { Node } from '../model/node.ts';
import { type Pod, podKey } from '../model/pod.ts';
import type { ReplacementInProgress } from '../model/pool.ts';
import type { EvictionBlock } from './eviction-rules.ts';
import type { ScalingMachine, ScalingNode } from './input.ts';
import type { Facts, PlannedMove, RefusalCode } from './plan.ts';
import type { PoolState } from './pool-offers.ts';
import type { Utilization } from './utilization.ts';

/** A machine whose removal is worth a simulation. */
export interface Candidate {
  readonly machine: ScalingMachine;
  readonly node: Node;
  readonly state: PoolState;
  /** The pods that run on it now. */
  readonly pods: readonly Pod[];
  /** Of these and of the pods that will be placed on it. */
  readonly utilization: Utilization;
}

/** Why a machine is kept. */
export interface Refused {
  readonly code: RefusalCode;
  readonly reason: string;
  readonly facts?: Facts;
  /** When it ends. */
  readonly until?: number | undefined;
}

export function utilizationRefusal({
  node,
  state,
  utilization,
}: Pick<Candidate, 'node' | 'state' | 'utilization'>): Refused | undefined {
  const { when, utilizationThreshold } = state.pool.config.scaleDown;
  const { cpu, memory, value, pods } = utilization;
  const facts = { cpuPercent: percentOf(cpu), memoryPercent: percentOf(memory), pods };
  if (pods === 0) return undefined;
  if (when === 'empty')
    return {
      code: 'NodeNotEmpty',
      reason: `node ${node.name} has ${formatCount(pods, 'pod')}, and pool ${state.pool.config.name} removes only empty machines`,
      facts,
    };
  // A threshold of 1 means all machines, also one that is requested to the last CPU.
  if (value < utilizationThreshold || utilizationThreshold >= 1) return undefined;
  return {
    code: 'NodeUtilized',
    reason: `node ${node.name} is needed: ${describeUtilization(utilization)} requested, threshold ${percentOf(utilizationThreshold)} %`,
    facts: { ...facts, thresholdPercent: percentOf(utilizationThreshold) },
  };
}

/** A machine that was created for a replacement is empty until pods are evicted from the others. */
export function replacingRefusal(
  { id, node }: Pick<ScalingMachine, 'id'> & { readonly node: ScalingNode },
  replacement: ReplacementInProgress | undefined,
): Refused | undefined {
  if (replacement?.added.includes(id) !== true) return undefined;
  const { length } = replacement.replaced;
  return {
    code: 'NodeReplacesOthers',
    reason: `node ${node.name} was created to replace ${formatCount(length, 'machine')} that ${length === 1 ? 'is' : 'are'} not removed yet`,
    facts: { replaced: length },
  };
}

export function blockRefusal(
  { name }: Node,
  { pod, reason, code }: EvictionBlock,
  what: string,
): Refused {
  return {
    code: 'NodePodBlocks',
    reason: `node ${name} ${what}: ${reason}`,
    facts: { pod: podKey(pod), block: code },
  };
}

/** Delays of the pool. */
export function delayRefusal({ node, state }: Candidate, now: number): Refused | undefined {
  const { config, lastAddAt, lastDeleteAt, lastFailureAt } = state.pool;
  const { delayAfterAddMs, delayAfterDeleteMs, delayAfterFailureMs } = config.scaleDown;
  const delays = [
    ['scale-up', lastAddAt, delayAfterAddMs],
    ['scale-down', lastDeleteAt, delayAfterDeleteMs],
    ['failed scale-down', lastFailureAt, delayAfterFailureMs],
  ] as const;
  for (const [what, at, delayMs] of delays) {
    if (at === undefined || at + delayMs <= now) continue;
    return {
      code: 'NodePoolDelay',
      reason: `node ${node.name} is kept for ${formatAge(at + delayMs - now)}: pool ${config.name} waits ${formatAge(delayMs)} after a ${what}`,
      facts: { after: what, delayMs, remainingMs: at + delayMs - now },
      until: at + delayMs,
    };
  }
  return undefined;
}

export function others(count: number): string {
  return count === 0 ? '' : ` and ${count} more`;
}

export function drainReason(
  { node, utilization }: Candidate,
  {
    planned,
    unneededMs,
    isReplaced,
  }: {
    readonly planned: readonly PlannedMove[];
    readonly unneededMs: number;
    readonly isReplaced: boolean;
  },
): string {
  const since = isReplaced
    ? `node ${node.name} is replaced by new machines`
    : `node ${node.name} has been unneeded for ${formatAge(unneededMs)}`;
  if (utilization.pods === 0) return `${since}: it is empty`;
  const requested = `${describeUtilization(utilization)} requested`;
  if (planned.length === 0)
    return `${since}: ${requested}, and none of its pods needs another place`;
  const targets = [...new Set(planned.map(({ to }) => to))].toSorted();
  const named = targets.slice(0, 3).join(', ') + others(Math.max(0, targets.length - 3));
  const fit = planned.length === 1 ? 'its pod fits on' : `its ${planned.length} pods fit on`;
  return `${since}: ${requested}, and ${fit} ${named}`;
}

function describeUtilization({ cpu, memory }: Utilization): string {
  return `cpu ${percentOf(cpu)} % and memory ${percentOf(memory)} %`;
}

export function percentOf(share: number): number {
  return Math.round(share * 1_000) / 10;
}

const SCALE_DOWN_DISABLED = 'cluster-autoscaler.kubernetes.io/scale-down-disabled';
const DO_NOT_DISRUPT = 'karpenter.sh/do-not-disrupt';

export function annotationRefusal({ name, annotations }: ScalingNode): Refused | undefined {
  if (annotations[SCALE_DOWN_DISABLED] === 'true')
    return {
      code: 'NodeScaleDownDisabled',
      reason: `node ${name} has annotation ${SCALE_DOWN_DISABLED}`,
    };
  if (annotations[DO_NOT_DISRUPT] === 'true')
    return { code: 'NodeDoNotDisrupt', reason: `node ${name} has annotation ${DO_NOT_DISRUPT}` };
  return undefined;
}
