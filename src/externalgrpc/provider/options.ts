// SPDX-License-Identifier: Apache-2.0
// Options of a node group. A response replaces every option of the autoscaler, so it is complete or absent: a missing
// duration crashes autoscalers up to 1.34 and counts as zero in later ones.

import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs, durationMs } from '@bufbuild/protobuf/wkt';
import type { PoolConfig } from '../../config/types/index.ts';
import type {
  NodeGroupAutoscalingOptions,
  NodeGroupAutoscalingOptionsSchema,
} from '../gen/externalgrpc/cloud_provider_pb.js';

const NANOSECONDS_PER_MS = 1_000_000n;

/** The defaults of the autoscaler's flags, for a client that sends none. */
const FLAG_DEFAULTS = {
  unneededMs: 10 * 60_000,
  unreadyMs: 20 * 60_000,
  provisionMs: 15 * 60_000,
  threshold: 0.5,
} as const;

/** Undefined: the autoscaler's flags apply. */
export function effectiveOptions(
  settings: PoolConfig['clusterAutoscaler'],
  defaults: NodeGroupAutoscalingOptions | undefined,
): MessageInitShape<typeof NodeGroupAutoscalingOptionsSchema> | undefined {
  const isSet = Object.values(settings).some((value) => value !== undefined);
  if (!isSet || isBefore129(defaults)) return undefined;
  const { unneededMs, unreadyMs, provisionMs } = mergeTimes(settings, readFlagTimes(defaults));
  return {
    ...mergeScaleDownOptions(settings, defaults),
    scaleDownUnneededTime: legacyDuration(unneededMs),
    scaleDownUnreadyTime: legacyDuration(unreadyMs),
    MaxNodeProvisionTime: legacyDuration(provisionMs),
    scaleDownUnneededDuration: durationFromMs(unneededMs),
    scaleDownUnreadyDuration: durationFromMs(unreadyMs),
    MaxNodeProvisionDuration: durationFromMs(provisionMs),
  };
}

const NO_DEFAULTS = {
  scaleDownUtilizationThreshold: FLAG_DEFAULTS.threshold,
  scaleDownGpuUtilizationThreshold: FLAG_DEFAULTS.threshold,
  zeroOrMaxNodeScaling: false,
  ignoreDaemonSetsUtilization: false,
};

/** Zero and false are set values and are kept. */
function mergeScaleDownOptions(
  settings: PoolConfig['clusterAutoscaler'],
  defaults: typeof NO_DEFAULTS | NodeGroupAutoscalingOptions = NO_DEFAULTS,
) {
  return {
    scaleDownUtilizationThreshold:
      settings.scaleDownUtilizationThreshold ?? defaults.scaleDownUtilizationThreshold,
    scaleDownGpuUtilizationThreshold:
      settings.scaleDownGpuUtilizationThreshold ?? defaults.scaleDownGpuUtilizationThreshold,
    zeroOrMaxNodeScaling: settings.zeroOrMaxNodeScaling ?? defaults.zeroOrMaxNodeScaling,
    ignoreDaemonSetsUtilization:
      settings.ignoreDaemonSetsUtilization ?? defaults.ignoreDaemonSetsUtilization,
  };
}

/** Up to 1.28 the autoscaler reads a provision time of zero from every response and would delete each new machine. */
function isBefore129(defaults: NodeGroupAutoscalingOptions | undefined): boolean {
  return (
    defaults?.scaleDownUnneededTime !== undefined &&
    defaults.MaxNodeProvisionTime === undefined &&
    defaults.MaxNodeProvisionDuration === undefined
  );
}

interface Times {
  readonly unneededMs: number;
  readonly unreadyMs: number;
  readonly provisionMs: number;
}

function mergeTimes(settings: PoolConfig['clusterAutoscaler'], flags: Times): Times {
  return {
    unneededMs: settings.scaleDownUnneededTimeMs ?? flags.unneededMs,
    unreadyMs: settings.scaleDownUnreadyTimeMs ?? flags.unreadyMs,
    provisionMs: settings.maxNodeProvisionTimeMs ?? flags.provisionMs,
  };
}

function readFlagTimes(flags: NodeGroupAutoscalingOptions | undefined): Times {
  if (flags === undefined) return FLAG_DEFAULTS;
  return {
    unneededMs:
      readDurationMs(flags.scaleDownUnneededDuration, flags.scaleDownUnneededTime) ??
      FLAG_DEFAULTS.unneededMs,
    unreadyMs:
      readDurationMs(flags.scaleDownUnreadyDuration, flags.scaleDownUnreadyTime) ??
      FLAG_DEFAULTS.unreadyMs,
    provisionMs:
      readDurationMs(flags.MaxNodeProvisionDuration, flags.MaxNodeProvisionTime) ??
      FLAG_DEFAULTS.provisionMs,
  };
}

function readDurationMs(
  newer: NodeGroupAutoscalingOptions['scaleDownUnneededDuration'],
  older: NodeGroupAutoscalingOptions['scaleDownUnneededTime'],
): number | undefined {
  if (newer !== undefined) return durationMs(newer);
  return older === undefined ? undefined : Number(older.duration / NANOSECONDS_PER_MS);
}

function legacyDuration(ms: number): { duration: bigint } {
  return { duration: BigInt(Math.round(ms)) * NANOSECONDS_PER_MS };
}
