// SPDX-License-Identifier: Apache-2.0
// What the autoscaler has observed and decided, for people.
import type { Plan } from '../scaling/index.ts';
import type { Observed } from './observation.ts';

interface Amount {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
}

export interface AutoscalerStatus {
  /** Of the last decision; undefined before the first. */
  readonly plan: Plan | undefined;
  /** The last ones that changed something, newest first. */
  readonly plans: readonly Plan[];
  readonly pending: number;
  readonly nodes: number;
  /** By all pods on nodes. */
  readonly requested: Amount;
  readonly allocatable: Amount;
}

const MAX_PLANS = 20;
const NO_AMOUNT: Amount = { cpuMilli: 0, memoryBytes: 0 };

export const NOTHING_DECIDED: AutoscalerStatus = {
  plan: undefined,
  plans: [],
  pending: 0,
  nodes: 0,
  requested: NO_AMOUNT,
  allocatable: NO_AMOUNT,
};

export function nextStatus(
  { plans }: AutoscalerStatus,
  plan: Plan,
  { snapshot, pending }: Observed,
): AutoscalerStatus {
  const { nodes } = snapshot;
  const held = nodes.flatMap(({ name }) => snapshot.podsOn(name).map((pod) => pod.held));
  return {
    plan,
    plans: plan.steps.length === 0 ? plans : [plan, ...plans].slice(0, MAX_PLANS),
    pending: pending.length,
    nodes: nodes.length,
    requested: held.reduce(add, NO_AMOUNT),
    allocatable: nodes.map(({ allocatable }) => allocatable).reduce(add, NO_AMOUNT),
  };
}

function add(sum: Amount, { cpuMilli, memoryBytes }: Amount): Amount {
  return { cpuMilli: sum.cpuMilli + cpuMilli, memoryBytes: sum.memoryBytes + memoryBytes };
}
