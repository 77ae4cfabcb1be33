// SPDX-License-Identifier: Apache-2.0
// A plan of the present state for people: read once, by a process that need not be the driver, and not carried out.
import type { PoolConfig } from '../config/types/index.ts';
import type { Fleet } from '../fleet/index.ts';
import type { Clock } from '../ports/clock.ts';
import type { Cluster } from '../ports/cluster.ts';
import { Unreachable } from '../ports/errors.ts';
import {
  type Decision,
  decide,
  EMPTY_MEMORY,
  type ScalingInput,
  type ScalingSettings,
  type StoredInput,
  storeInput,
} from '../scaling/index.ts';
import { ClusterObserver } from './observation.ts';
import { scalingInput } from './scaling-input.ts';

export interface PlanOptions {
  readonly fleet: Fleet;
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly pools: readonly PoolConfig[];
  readonly settings: ScalingSettings;
}

export interface MadePlan {
  readonly input: ScalingInput;
  readonly decision: Decision;
  /** The input as plain data, from which the same plan can be made again. */
  readonly stored: StoredInput;
}

/** Since when machines are unneeded is known to the driver only: here it counts from now. */
export async function makePlan(options: PlanOptions): Promise<MadePlan> {
  const { fleet, cluster, clock, pools, settings } = options;
  await fleet.view.refresh();
  const capacity = await fleet.readCapacity();
  await cluster.refresh();
  const observer = new ClusterObserver(options);
  const observation = await observer.update();
  if (!observation.isFresh)
    throw new Unreachable('VIEW_STALE', `Kubernetes cannot be read: ${observation.reason}`);
  const input = scalingInput({
    observed: observation.observed,
    pools,
    view: fleet.view,
    capacity,
    staleReason: () => undefined,
    settings,
    memory: EMPTY_MEMORY,
    now: clock.now(),
    seed: 1,
  });
  return { input, decision: decide(input), stored: storeInput(input, observer.objects) };
}
