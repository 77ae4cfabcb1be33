// SPDX-License-Identifier: Apache-2.0
// One round: read everything, converge a step. Level-triggered: what happened before does not matter, only what is.
import { isAtRest, mayExist } from '../../model/machine.ts';
import { updateForecast } from '../capacity/headroom.ts';
import { readCluster } from '../context/cluster-reading.ts';
import type { WriteAuthority } from '../context/driver-lease.ts';
import type { DriverState } from '../context/driver-state.ts';
import type { EngineOptions } from '../context/options.ts';
import { ReconcileContext } from '../context/reconcile-context.ts';
import { recentRegionViews } from '../context/region-views.ts';
import { fillFreedPlaces, placeRequested } from '../machine/requested.ts';
import { removeOrphanedNodes } from '../nodes/orphaned-nodes.ts';
import { Records } from '../records/records.ts';
import { adoptVms } from '../recovery/adopt.ts';
import { collectGarbage } from '../recovery/collect-garbage.ts';
import { removeOrphanedSeeds } from '../recovery/orphaned-seeds.ts';
import { applyIntents } from './apply-intents.ts';
import type { Interval } from './interval.ts';
import { maintainMinimum } from './maintain-minimum.ts';
import { nextPassAt } from './next-pass.ts';
import { reconcileMachines } from './reconcile-machines.ts';

export interface PassReport {
  /** Regions that could not be read, with the reason: nothing of theirs was judged. */
  readonly stale: Readonly<Record<string, string>>;
  /** Regions where a VM is being made of which nobody can say whose it is. */
  readonly undecided: readonly string[];
  /** Machines that are on their way to somewhere. */
  readonly inProgress: number;
  /** Wall clock of the last fresh reading of each side in this process. */
  readonly seenAt: {
    readonly regions: Readonly<Record<string, number>>;
    readonly cluster: number | undefined;
  };
  /** When there may be something to do again, if nobody asks for anything. */
  readonly nextPassAt: number;
}

/** A round, and what goes on until the next one. */
export interface Pass {
  readonly report: PassReport;
  readonly stage: Interval;
}

/** For who runs one round and no steps. */
export async function runPass(
  options: EngineOptions,
  authority: WriteAuthority,
  state: DriverState,
): Promise<PassReport> {
  return (await runFullPass(options, authority, state)).report;
}

export async function runFullPass(
  options: EngineOptions,
  authority: WriteAuthority,
  state: DriverState,
): Promise<Pass> {
  const { store, clock, cache } = options;
  const records = await Records.open(cache, authority.lease, () => clock.now());
  const { views, stale } = await recentRegionViews(options, authority, state);
  options.forecast.setViews(views, stale);
  const clusterReading = await readCluster(options, state);
  const { journal } = store;
  const context = new ReconcileContext({
    ...options,
    journal,
    records,
    authority,
    state,
    views,
    clusterReading,
  });
  for (const [region, { takenAt }] of views) state.seenAt.set(region, takenAt);
  await recordStaleRegions(context, stale);
  await recordStaleCluster(context);
  const undecided = await adoptVms(context);
  options.forecast.setAdopted(views.keys());
  await applyIntents(context);
  await maintainMinimum(context, undecided);
  await applyIntents(context);
  const { waiting } = await placeRequested(context);
  const existing = context.records.machines.filter(({ phase }) => mayExist(phase));
  await reconcileMachines(context, existing);
  const filled = await fillFreedPlaces(context, waiting);
  await reconcileMachines(context, filled.placed);
  await removeOrphanedSeeds(context, undecided);
  await removeOrphanedNodes(context);
  await collectGarbage(context);
  await updateForecast(context, options.forecast);
  const inProgress = context.records.machines.filter((machine) => !isAtRest(machine));
  const report = {
    stale,
    undecided: [...undecided],
    inProgress: inProgress.length,
    nextPassAt: nextPassAt(context, inProgress),
    seenAt: { regions: Object.fromEntries(state.seenAt), cluster: state.clusterSeenAt },
  };
  return { report, stage: { context, waiting: filled.waiting } };
}

async function recordStaleRegions(
  context: ReconcileContext,
  stale: Readonly<Record<string, string>>,
): Promise<void> {
  for (const region of context.views.keys()) context.state.recorded.delete(`region ${region}`);
  for (const [region, why] of Object.entries(stale)) {
    await context.recordOnce(`region ${region}`, {
      kind: 'saw',
      subject: { region },
      reason: 'ViewStale',
      message: `region ${region} cannot be read, nothing of it is judged: ${why}`,
    });
  }
}

async function recordStaleCluster(context: ReconcileContext): Promise<void> {
  if (context.clusterReading.kind !== 'stale')
    return void context.state.recorded.delete('kubernetes');
  await context.recordOnce('kubernetes', {
    kind: 'saw',
    subject: {},
    reason: 'ViewStale',
    message: `Kubernetes cannot be read, nothing of it is judged: ${context.clusterReading.why}`,
  });
}
