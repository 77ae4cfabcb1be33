// SPDX-License-Identifier: Apache-2.0
// One decision for a person: observes, decides, and does nothing. Any process may do that, beside the one that drives.
import type { PoolConfig } from '../config/types/index.ts';
import type { Fleet } from '../fleet/index.ts';
import type { Clock } from '../ports/clock.ts';
import { type Cluster, type ClusterView, isViewFresh } from '../ports/cluster.ts';
import { PvescalerError, Unreachable } from '../ports/errors.ts';
import type { Random } from '../ports/random.ts';
import {
  type Decision,
  decide,
  type ScalingInput,
  type ScalingSettings,
} from '../scaling/index.ts';
import { type ClusterObjects, Snapshot } from '../scheduling/index.ts';
import { readMemory } from './durable-memory.ts';
import { schedulerNode } from './observation.ts';
import { regionStaleness } from './region-staleness.ts';
import { scalingInput } from './scaling-input.ts';

export interface PlanOnceOptions {
  readonly fleet: Fleet;
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly random: Random;
  readonly pools: readonly PoolConfig[];
  readonly settings: ScalingSettings;
  readonly signal: AbortSignal;
}

export interface PlannedOnce {
  readonly input: ScalingInput;
  readonly decision: Decision;
  /** What the snapshot of the input was made from. */
  readonly objects: ClusterObjects;
}

const MAX_SYNC_MS = 30_000;

/** With what the autoscaler that runs remembers. */
export async function planOnce(options: PlanOnceOptions): Promise<PlannedOnce> {
  const { fleet, clock, random, pools, settings } = options;
  const view = await readView(options);
  await fleet.view.refresh();
  const forecast = await fleet.readCapacity();
  const objects = clusterObjects(view);
  const now = clock.now();
  const input = scalingInput({
    observed: {
      snapshot: Snapshot.of(objects),
      pending: view.pods.filter(({ nodeName, isFinished }) => nodeName === '' && !isFinished),
      disruptionBudgets: view.workloads?.disruptionBudgets ?? [],
      nodes: new Map(view.nodes.map((node) => [node.name, node])),
      revision: view.revision,
    },
    pools,
    view: fleet.view,
    capacity: forecast.capacity,
    staleReason: regionStaleness(forecast, now),
    settings,
    memory: readMemory(fleet.view.pools),
    now,
    seed: random.integer(2 ** 31),
  });
  return { input, decision: decide(input), objects };
}

function clusterObjects({ nodes, pods, workloads }: ClusterView): ClusterObjects {
  return {
    nodes: nodes.map(schedulerNode),
    pods,
    ...(workloads !== undefined && {
      namespaces: workloads.namespaces,
      storage: workloads.storage,
      daemonSets: workloads.daemonSets,
    }),
  };
}

/** Waits for the first list of all objects. */
async function readView({ cluster, clock, signal }: PlanOnceOptions): Promise<ClusterView> {
  const deadline = clock.monotonic() + MAX_SYNC_MS;
  let reason = 'no answer';
  while (clock.monotonic() < deadline) {
    try {
      const view = await cluster.view();
      if (isViewFresh(view, clock.now())) return view;
      reason = 'its last update is too old';
    } catch (error) {
      if (!(error instanceof PvescalerError) || error.code !== 'VIEW_STALE') throw error;
      reason = String(error.facts['lastError'] ?? error.message);
    }
    await clock.sleep(SYNC_POLL_MS, { signal });
  }
  throw new Unreachable('KUBERNETES_UNREACHABLE', `the cluster cannot be read: ${reason}`);
}

const SYNC_POLL_MS = 100;
