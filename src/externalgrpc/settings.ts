// SPDX-License-Identifier: Apache-2.0
import type { PoolConfig } from '../config/types/index.ts';

export interface ExternalGrpcSettings {
  /** Each is a node group of the Cluster Autoscaler, or one per size of its list. */
  readonly pools: readonly PoolConfig[];
  readonly pricing: { readonly vcpuHour: number; readonly memoryGiBHour: number };
  readonly gpu: { readonly label: string; readonly types: readonly string[] };
}
