// SPDX-License-Identifier: Apache-2.0
import type { Config } from '../config/index.ts';

/** What the decisions of the standalone autoscaler read of the config, beside the pools. */
export function scalingSettings({ autoscaler, guards, pricing, gpu }: Config) {
  return { ...autoscaler, guards, pricing, gpuLabel: gpu.label };
}
