// SPDX-License-Identifier: Apache-2.0
// One pass over the whole fleet: read records, regions and cluster; adopt, apply intents, place, clean up. Machines are
// added to the work queue and not reconciled here, so that a host that does not answer delays only its own.
// Level-triggered: it decides from what is there, not from what happened before.
import { formatCount } from '../../model/format-text.ts';
import type { JournalSubject } from '../../model/journal-entry.ts';
import { isPhaseSettled, type Machine, mayHaveVm } from '../../model/machine.ts';
import type { PvescalerError } from '../../ports/errors.ts';
import { backoffOf } from '../capacity/backoff.ts';
import type { CapacityForecast } from '../capacity/capacity-forecast.ts';
import { updateForecast } from '../capacity/headroom.ts';
import { readPrivileges } from '../capacity/missing-privileges.ts';
import { isReadingStorages, readStorages } from '../capacity/storage-space.ts';
import { readAddresses } from '../capacity/taken-addresses.ts';
import { readTemplates } from '../capacity/templates.ts';
import { readCluster } from '../context/cluster-reading.ts';
import type { WriteAuthority } from '../context/driver-lease.ts';
import type { DriverState } from '../context/driver-state.ts';
import type { HostJobs } from '../context/host-jobs.ts';
import type { FleetOptions } from '../context/options.ts';
import { ReconcileContext } from '../context/reconcile-context.ts';
import { recentRegionViews } from '../context/region-views.ts';
import { removedPools } from '../context/removed-pools.ts';
import { withoutSameRegions } from '../context/same-proxmox.ts';
import type { FleetSettings } from '../context/settings.ts';
import { requestedBefore } from '../context/unknown-vms.ts';
import { isSettled } from '../machine/ready.ts';
import { placeRequested } from '../machine/requested.ts';
import { removeOrphanedNodes } from '../nodes/orphaned-nodes.ts';
import type { RecordCache } from '../records/record-cache.ts';
import { Records } from '../records/records.ts';
import { adoptVms } from '../recovery/adopt.ts';
import { collectGarbage, removeOrphanedSeeds } from '../recovery/cleanup.ts';
import { correctFutureTimes } from '../recovery/correct-times.ts';
import { countOrphans, type OrphanCount } from '../recovery/count-orphans.ts';
import { carryOutVmDecisions } from '../recovery/decide-vm.ts';

import { applyIntents, maintainMinimum } from './apply-intents.ts';
import type { MinimumDelay } from './minimum-delay.ts';

import type { WorkQueue } from './work-queue.ts';

/** What all passes of one process share. */
export interface EngineOptions extends Omit<FleetOptions, 'settings'> {
  /** Those that apply now. A pass takes them once, at its beginning. */
  readonly settings: () => FleetSettings;
  readonly cache: RecordCache;
  readonly forecast: CapacityForecast;
  readonly minimumDelay?: MinimumDelay | undefined;
}

export interface PassReport {
  /** Regions that could not be read, with the reason: nothing of theirs was decided. */
  readonly stale: Readonly<Record<string, string>>;
  /** The errors of those whose read failed; a region that has not answered yet has none. */
  readonly errors: Readonly<Record<string, PvescalerError>>;
  /** Why Kubernetes could not be read: nothing was decided by its Nodes. */
  readonly clusterStale?: string | undefined;
  /** Regions with a VM that is being created and whose owner is not known yet. */
  readonly undecided: readonly string[];
  /** Machines that are neither ready nor over, and orphaned VMs that are being removed. */
  readonly inProgress: number;
  /** What has no counterpart, as far as passes find it without further requests. */
  readonly orphans: readonly OrphanCount[];
  /** Wall clock of the last fresh reading of each side in this process. */
  readonly seenAt: {
    readonly regions: Readonly<Record<string, number>>;
    readonly cluster: number | undefined;
  };
  /** When the next pass is due if no request comes first. */
  readonly nextPassAt: number;
}

export interface PassParts {
  readonly authority: WriteAuthority;
  readonly state: DriverState;
  readonly queue: Pick<WorkQueue, 'addIfAbsent' | 'runExclusive'>;
  readonly jobs: HostJobs;
  /** Called with the context as soon as there is one: handlers use it from then on. */
  readonly onContext: (context: ReconcileContext) => void;
  /** Runs `work` while no other placement runs. */
  readonly exclusive: (work: () => Promise<void>) => Promise<void>;
}

export async function runPass(options: EngineOptions, parts: PassParts): Promise<PassReport> {
  const { state, queue } = parts;
  const { context, stale, errors } = await readAll(options, parts);
  parts.onContext(context);
  state.requestedBefore ??= requestedBefore(context.records);
  await recordStale(context, stale, errors);
  await recordRemovedPools(context);
  await carryOutVmDecisions(context, parts.jobs);
  options.forecast.setAdopted(await adoptVms(context, parts.jobs));
  const reads = [readTemplates, readAddresses, readPrivileges];
  await parts.jobs.settle(reads.flatMap((read) => read(context, parts.jobs)));
  // Nothing is requested and the delay does not begin before a region was read.
  const minimumWaitMs = context.views.size === 0 ? 0 : (options.minimumDelay?.remainingMs() ?? 0);
  await parts.exclusive(async () => {
    await correctFutureTimes(context, queue);
    await applyIntents(context, queue);
    if (minimumWaitMs === 0) await maintainMinimum(context);
    await applyIntents(context, queue);
  });
  await parts.jobs.settle(readStorages(context, parts.jobs));
  await parts.exclusive(async () => {
    const { unplaced } = await placeRequested(context);
    state.unplaced = unplaced;
  });
  await enqueueMachines(context, queue);
  await removeOrphanedSeeds(context, parts.jobs);
  removeOrphanedNodes(context, parts.jobs);
  await collectGarbage(context);
  await updateForecast(context, options.forecast);
  const inProgress = context.records.machines.filter((machine) => !isPhaseSettled(machine));
  return {
    stale,
    errors,
    clusterStale: staleReasonOf(context),
    undecided: [...context.undecided],
    inProgress: inProgress.length + state.orphanedVms,
    orphans: countOrphans(context),
    nextPassAt: nextPassAt(context, inProgress, minimumWaitMs),
    seenAt: { regions: Object.fromEntries(state.seenAt), cluster: state.clusterSeenAt },
  };
}

async function readAll(options: EngineOptions, { authority, state }: PassParts) {
  const { clock, cache, store } = options;
  const records = await Records.open(cache, authority.lease, () => clock.now());
  const read = await recentRegionViews(options, authority, state.regionReadings);
  const { views, stale, errors } = await withoutSameRegions(options, read, state.comparedRegions);
  options.forecast.setViews(views, stale);
  const clusterReading = await readCluster(options, state);
  for (const [region, { takenAt }] of views) state.seenAt.set(region, takenAt);
  const { journal } = store;
  const context = new ReconcileContext({
    ...options,
    settings: options.settings(),
    journal,
    records,
    authority,
    state,
    views,
    clusterReading,
  });
  return { context, stale, errors };
}

/** Machines at rest cost a comparison; everything else is reconciled by the work queue. */
async function enqueueMachines(
  context: ReconcileContext,
  queue: PassParts['queue'],
): Promise<void> {
  for (const machine of context.records.machines) {
    if (!mayHaveVm(machine.phase) || isSettled(context, machine)) continue;
    queue.addIfAbsent(machine.id);
    await context.yieldToEventLoop();
  }
}

/**
 * Soon while a machine is in progress, or waits for a region that cannot be read, or a command may wait for the first
 * answer of a region. A machine in back-off counts from its end; a machine that waits for capacity is tried again in the
 * next regular pass. A drain needs no pass.
 */
function nextPassAt(
  context: ReconcileContext,
  inProgress: readonly Machine[],
  minimumWaitMs: number,
): number {
  const { reconcileMs, busyMs } = context.settings;
  const latest = context.now + Math.min(reconcileMs, minimumWaitMs || reconcileMs);
  const soonest = context.now + busyMs;
  const isReadable = (pool: string) =>
    context.pool(pool)?.regions.every((region) => context.views.has(region)) ?? true;
  const placingAt = (pool: string) =>
    isReadingStorages(context) || !isReadable(pool) ? soonest : latest;
  const dueAt = ({ id, phase, pool }: Machine): number => {
    if (phase === 'requested') return backoffOf(context, pool)?.until ?? placingAt(pool);
    return phase === 'draining' ? latest : (backoffEndOf(context, id) ?? soonest);
  };
  const first = isFirstAnswerAwaited(context.state) ? soonest : latest;
  const next = inProgress.reduce((min, machine) => Math.min(min, dueAt(machine)), first);
  return Math.max(soonest, next);
}

function isFirstAnswerAwaited({ regionReadings }: DriverState): boolean {
  return [...regionReadings.values()].some(
    ({ view, error, reading }) =>
      reading !== undefined && view === undefined && error === undefined,
  );
}

/** Wall clock. */
function backoffEndOf({ state, clock }: ReconcileContext, id: string): number | undefined {
  const until = state.backoffs.get(id)?.until;
  return until === undefined ? undefined : clock.now() + until - clock.monotonic();
}

async function recordRemovedPools(context: ReconcileContext): Promise<void> {
  for (const name of Object.keys(context.settings.pools))
    context.state.recorded.delete(`removed pool ${name}`);
  for (const { name, machines } of removedPools(context.records.machines, context.settings.pools)) {
    await context.recordOnce(`removed pool ${name}`, {
      kind: 'refused',
      subject: { pool: name },
      reason: 'PoolNotInConfig',
      message: `pool ${name} is not in the config, so its ${formatCount(machines.length, 'machine')} ${machines.length === 1 ? 'is kept as it is' : 'are kept as they are'}: add the pool again, or run pvescaler pool delete ${name}`,
      numbers: { machines: machines.length },
    });
  }
}

async function recordStale(
  context: ReconcileContext,
  stale: Readonly<Record<string, string>>,
  errors: Readonly<Record<string, PvescalerError>>,
): Promise<void> {
  for (const region of context.views.keys()) {
    await recordRecovery(context, `region ${region}`, { region });
  }
  for (const [region, why] of Object.entries(stale)) {
    const error = errors[region];
    // Without an answer the reason only counts seconds.
    if (error === undefined && context.state.recorded.has(`region ${region}`)) continue;
    await context.recordOnce(`region ${region}`, {
      kind: 'saw',
      subject: { region },
      reason: error === undefined || error.retry === 'backoff' ? 'ViewStale' : 'RegionRefused',
      message: `region ${region} cannot be read, so nothing is decided there: ${why}`,
    });
  }
  const why = staleReasonOf(context);
  if (why === undefined) return recordRecovery(context, 'Kubernetes', {});
  await context.recordOnce('Kubernetes', {
    kind: 'saw',
    subject: {},
    reason: 'ViewStale',
    message: `Kubernetes cannot be read, so nothing is decided by its Nodes: ${why}`,
  });
}

async function recordRecovery(
  context: ReconcileContext,
  source: string,
  subject: JournalSubject,
): Promise<void> {
  if (!context.state.recorded.delete(source)) return;
  const message = `${source} can be read again`;
  await context.record({ kind: 'saw', subject, reason: 'ViewRecovered', message });
}

function staleReasonOf({ clusterReading }: ReconcileContext): string | undefined {
  return clusterReading.kind === 'stale' ? clusterReading.why : undefined;
}
