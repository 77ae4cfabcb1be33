// SPDX-License-Identifier: Apache-2.0
// The workloads: what replica sets are created, when they are scaled, and how long the cluster is left alone in between.

export interface PodTemplate {
  readonly cpu: string;
  readonly memory: string;
  /** At most one of its pods per node. */
  readonly isAlone?: boolean;
  /** Its pods are spread evenly over the nodes. */
  readonly isSpread?: boolean;
}

export type WorkloadStep =
  /** Replica sets by name; an existing one is scaled. All their pods are bound before the next step. */
  | { readonly scale: Readonly<Record<string, number>> }
  /** Nothing is changed for so many unneeded times. */
  | { readonly holdUnneededTimes: number };

export interface Workload {
  readonly name: string;
  readonly templates: Readonly<Record<string, PodTemplate>>;
  /** At the end all pods are removed, and the workload is over when no machine is left. */
  readonly steps: readonly WorkloadStep[];
}

const SMALL: PodTemplate = { cpu: '300m', memory: '256Mi' };
const MIDDLE: PodTemplate = { cpu: '900m', memory: '1Gi' };
const LARGE: PodTemplate = { cpu: '3', memory: '5Gi' };

export const WORKLOADS: readonly Workload[] = [
  { name: 'burst', templates: { web: MIDDLE }, steps: [{ scale: { web: 40 } }] },
  {
    name: 'mixed',
    templates: { small: SMALL, middle: MIDDLE, large: LARGE },
    steps: [{ scale: { small: 40, middle: 16, large: 6 } }],
  },
  {
    name: 'spread',
    templates: {
      alone: { ...MIDDLE, isAlone: true },
      spread: { ...MIDDLE, isSpread: true },
      filler: SMALL,
    },
    steps: [{ scale: { alone: 6, spread: 8, filler: 20 } }],
  },
  {
    name: 'waves',
    templates: { web: MIDDLE, batch: SMALL },
    steps: [
      { scale: { web: 20, batch: 10 } },
      { scale: { web: 5 } },
      { holdUnneededTimes: 3 },
      { scale: { web: 30, batch: 30 } },
    ],
  },
  {
    name: 'drop',
    templates: { day: MIDDLE, night: SMALL },
    steps: [
      { scale: { night: 24 } },
      { scale: { day: 24 } },
      { holdUnneededTimes: 0.5 },
      { scale: { day: 0, night: 18 } },
      { holdUnneededTimes: 5 },
    ],
  },
];

export const QUICK_WORKLOADS: readonly Workload[] = [
  { name: 'burst', templates: { web: MIDDLE }, steps: [{ scale: { web: 4 } }] },
];
