// SPDX-License-Identifier: Apache-2.0
// Options of a node group. An answer replaces every option of the autoscaler, so it is complete or there is none: a
// duration left out crashes autoscalers up to 1.34 and is zero for later ones.
import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs, durationMs } from '@bufbuild/protobuf/wkt';
import type {
  NodeGroupAutoscalingOptions,
  NodeGroupAutoscalingOptionsSchema,
} from '../gen/externalgrpc/cloud_provider_pb.js';
import type { OptionSettings } from '../settings.ts';

const NANOSECONDS = 1_000_000n;

/** The autoscaler's own defaults, for a client that names none. */
const FLAGS = {
  unneededMs: 10 * 60_000,
  unreadyMs: 20 * 60_000,
  provisionMs: 15 * 60_000,
  threshold: 0.5,
} as const;

/** Undefined: the autoscaler's flags hold. */
export function answeredOptions(
  settings: OptionSettings,
  defaults: NodeGroupAutoscalingOptions | undefined,
): MessageInitShape<typeof NodeGroupAutoscalingOptionsSchema> | undefined {
  const isSet = Object.values(settings).some((value) => value !== undefined);
  if (!isSet || isBefore129(defaults)) return undefined;
  const { unneededMs, unreadyMs, provisionMs } = timesOf(settings, flagTimes(defaults));
  return {
    ...judgementOf(settings, defaults),
    scaleDownUnneededTime: legacy(unneededMs),
    scaleDownUnreadyTime: legacy(unreadyMs),
    MaxNodeProvisionTime: legacy(provisionMs),
    scaleDownUnneededDuration: durationFromMs(unneededMs),
    scaleDownUnreadyDuration: durationFromMs(unreadyMs),
    MaxNodeProvisionDuration: durationFromMs(provisionMs),
  };
}

const NO_DEFAULTS = {
  scaleDownUtilizationThreshold: FLAGS.threshold,
  scaleDownGpuUtilizationThreshold: FLAGS.threshold,
  zeroOrMaxNodeScaling: false,
  ignoreDaemonSetsUtilization: false,
};

/** Zero and false are values: they are not replaced. */
function judgementOf(
  settings: OptionSettings,
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

/** Up to 1.28 it takes a provision time of zero from any answer, and would delete every new machine. */
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

function timesOf(settings: OptionSettings, flags: Times): Times {
  return {
    unneededMs: settings.scaleDownUnneededTimeMs ?? flags.unneededMs,
    unreadyMs: settings.scaleDownUnreadyTimeMs ?? flags.unreadyMs,
    provisionMs: settings.maxNodeProvisionTimeMs ?? flags.provisionMs,
  };
}

function flagTimes(flags: NodeGroupAutoscalingOptions | undefined): Times {
  if (flags === undefined) return FLAGS;
  return {
    unneededMs:
      msOf(flags.scaleDownUnneededDuration, flags.scaleDownUnneededTime) ?? FLAGS.unneededMs,
    unreadyMs: msOf(flags.scaleDownUnreadyDuration, flags.scaleDownUnreadyTime) ?? FLAGS.unreadyMs,
    provisionMs:
      msOf(flags.MaxNodeProvisionDuration, flags.MaxNodeProvisionTime) ?? FLAGS.provisionMs,
  };
}

function msOf(
  newer: NodeGroupAutoscalingOptions['scaleDownUnneededDuration'],
  older: NodeGroupAutoscalingOptions['scaleDownUnneededTime'],
): number | undefined {
  if (newer !== undefined) return durationMs(newer);
  return older === undefined ? undefined : Number(older.duration / NANOSECONDS);
}

function legacy(ms: number): { duration: bigint } {
  return { duration: BigInt(Math.round(ms)) * NANOSECONDS };
}
