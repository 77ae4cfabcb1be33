// SPDX-License-Identifier: Apache-2.0
// Pool settings that only this front end needs: the expected node, its price, and the options for the Cluster
// Autoscaler. The values are validated; nothing here has a default.
import type { Labels } from '../model/labels.ts';
import type { MachineSize } from '../model/machine.ts';
import type { Taint } from '../model/taints.ts';

export interface Reserve {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

/** The part of a machine that pods cannot use. */
export interface CapacitySettings {
  readonly maxPods: number;
  readonly kubeReserved: Reserve;
  readonly systemReserved: Reserve;
  readonly evictionThreshold: { readonly memoryBytes: number; readonly diskPercentage: number };
}

/** Undefined: the autoscaler's own flag applies. All undefined: the response contains no options. */
export interface OptionSettings {
  readonly scaleDownUtilizationThreshold: number | undefined;
  readonly scaleDownGpuUtilizationThreshold: number | undefined;
  readonly scaleDownUnneededTimeMs: number | undefined;
  readonly scaleDownUnreadyTimeMs: number | undefined;
  readonly maxNodeProvisionTimeMs: number | undefined;
  readonly zeroOrMaxNodeScaling: boolean | undefined;
  readonly ignoreDaemonSetsUtilization: boolean | undefined;
}

/** A node group of the Cluster Autoscaler; its id is the pool's name. */
export interface GroupSettings {
  readonly name: string;
  readonly regions: readonly string[];
  readonly min: number;
  readonly max: number;
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
  readonly pricePerHour: number | undefined;
  readonly options: OptionSettings;
}

export interface ExternalGrpcSettings {
  readonly groups: readonly GroupSettings[];
  readonly pricing: { readonly vcpuHour: number; readonly memoryGiBHour: number };
  readonly gpu: { readonly label: string; readonly types: readonly string[] };
}
