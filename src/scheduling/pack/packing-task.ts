// SPDX-License-Identifier: Apache-2.0
// What packing plans are made of and from.

import type { PodGroup } from './groups.ts';
import type { MachineTemplate } from './machine-template.ts';

/** The pods of one machine: how many of each group, by the group's number. */
export type MachinePods = ReadonlyMap<number, number>;

export interface GroupPods {
  readonly number: number;
  readonly group: PodGroup;
  /** How many pods of the group need a machine. */
  readonly pods: number;
}

export interface PlanCost {
  readonly machines: number;
  readonly cost: number;
}

export interface PackingPlan extends PlanCost {
  readonly machinePods: () => readonly MachinePods[];
}

/** The templates that pods with the same node rules may use, and those pods. */
export interface PackingTask {
  readonly templates: readonly MachineTemplate[];
  readonly groups: readonly GroupPods[];
}
