// SPDX-License-Identifier: Apache-2.0
// Pool settings that only this front end needs: sizes, prices and options for the Cluster Autoscaler. The values are
// validated; nothing here has a default.
import type { PoolNodeSettings } from '../pools/index.ts';

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
export interface GroupSettings extends PoolNodeSettings {
  readonly min: number;
  readonly max: number;
  readonly pricePerHour: number | undefined;
  readonly options: OptionSettings;
}

export interface ExternalGrpcSettings {
  readonly groups: readonly GroupSettings[];
  readonly pricing: { readonly vcpuHour: number; readonly memoryGiBHour: number };
  readonly gpu: { readonly label: string; readonly types: readonly string[] };
}
