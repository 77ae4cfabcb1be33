// SPDX-License-Identifier: Apache-2.0
// Pool settings that describe the pool's nodes. The values are validated; nothing here has a default.
import type { Labels } from '../model/labels.ts';
import type { MachineSize } from '../model/machine.ts';
import type { Taint } from '../model/taints.ts';

export interface ReservedResources {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

/** The part of a machine that pods cannot use. */
export interface CapacitySettings {
  readonly maxPods: number;
  readonly kubeReserved: ReservedResources;
  readonly systemReserved: ReservedResources;
  readonly evictionThreshold: { readonly memoryBytes: number; readonly diskPercentage: number };
}

export interface PoolNodeSettings {
  readonly name: string;
  readonly regions: readonly string[];
  readonly size: MachineSize;
  /** The host, when the pool's machines can run on one host only. */
  readonly zone: string | undefined;
  readonly architecture: string;
  readonly labels: Labels;
  readonly groupLabel: string;
  readonly taints: readonly Taint[];
  readonly instanceType: string | undefined;
  readonly gpu:
    | { readonly type: string; readonly count: number; readonly resource: string }
    | undefined;
  readonly extendedResources: Readonly<Record<string, number>>;
  readonly capacity: CapacitySettings;
}
