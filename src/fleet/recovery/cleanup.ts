// SPDX-License-Identifier: Apache-2.0
// Removes what is no longer needed: seeds whose machine is over or unknown, and old records.
import { type Machine, parseMachineId } from '../../model/machine.ts';
import { COOL_DOWN_MS } from '../../placement/index.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import type { HostJobs } from '../context/host-jobs.ts';
import { isMachineError } from '../context/machine-error.ts';
import { DONE } from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { seedOwner } from '../machine/vm-identity.ts';

const SWEEP_INTERVAL_MS = 5 * 60_000;

export interface SeedFound {
  readonly region: string;
  readonly host: string;
  readonly volume: string;
  readonly machine: string;
}

export async function removeOrphanedSeeds(
  context: ReconcileContext,
  jobs: HostJobs,
): Promise<void> {
  const now = context.clock.monotonic();
  if (now - context.state.sweptAt < SWEEP_INTERVAL_MS) return;
  context.state.sweptAt = now;
  for (const view of context.views.values()) {
    const { region } = view;
    const hosts = hostsToQuery(context, view);
    forgetSeedsElsewhere(context, region, hosts);
    for (const host of hosts) {
      jobs.start(`seeds on host ${host} in region ${region}`, { region, host }, async (newest) => {
        let count = 0;
        for (const seed of await orphanSeedsOn(newest, region, host)) {
          const isRemoved = await removeOrReport(newest, seed, newest.undecided.has(region));
          if (!isRemoved) count += 1;
        }
        newest.state.seedsLeft.set(`${region}/${host}`, { region, count });
        return DONE;
      });
    }
  }
}

/** A shared storage may have been listed by another host before. */
function forgetSeedsElsewhere(
  { state }: ReconcileContext,
  region: string,
  hosts: readonly string[],
): void {
  const listed = new Set(hosts.map((host) => `${region}/${host}`));
  for (const [key, left] of state.seedsLeft) {
    if (left.region === region && !listed.has(key)) state.seedsLeft.delete(key);
  }
}

/** Whether it was removed. */
async function removeOrReport(
  context: ReconcileContext,
  seed: SeedFound,
  isUndecided: boolean,
): Promise<boolean> {
  const known = machineOf(context, seed.machine);
  const mayDelete = known !== undefined || (context.settings.orphans === 'delete' && !isUndecided);
  const subject = { region: seed.region, host: seed.host, machine: seed.machine };
  if (mayDelete && !(await tryDelete(context, seed))) return false;
  await context.recordOnce(seed.volume, {
    kind: mayDelete ? 'did' : 'saw',
    subject,
    reason: 'OrphanSeed',
    message: `${seed.volume} belongs to no machine${mayDelete ? ' and was removed' : ''}`,
  });
  return mayDelete;
}

/** False when the seed cannot be deleted now; the next sweep retries. */
async function tryDelete(context: ReconcileContext, seed: SeedFound): Promise<boolean> {
  const { region, host, volume, machine } = seed;
  try {
    await context.hypervisor(region).deleteVolume(host, volume, context.writeOptions());
    return true;
  } catch (error) {
    if (!isMachineError(error)) throw error;
    await context.recordOnce(volume, {
      kind: 'failed',
      subject: { region, host, machine },
      reason: error.code,
      message: `${volume} belongs to no machine and could not be removed: ${error.message}`,
    });
    return false;
  }
}

/** Seeds whose machine is over, unknown, or no longer needs them. */
export async function orphanSeeds(
  context: ReconcileContext,
  view: RegionView,
): Promise<readonly SeedFound[]> {
  const found = hostsToQuery(context, view).map((host) =>
    orphanSeedsOn(context, view.region, host),
  );
  return (await Promise.all(found)).flat();
}

async function orphanSeedsOn(
  context: ReconcileContext,
  region: string,
  host: string,
): Promise<readonly SeedFound[]> {
  const found = await seedsOn(context, region, host);
  return found.filter(({ machine }) => {
    const known = machineOf(context, machine);
    return known === undefined || isSeedUnused(known);
  });
}

/** The machine is over, or ready and its seed was deleted: then this one is a late upload. */
function isSeedUnused({ phase, seedVolume }: Machine): boolean {
  const isOver = phase === 'gone' || phase === 'failed';
  return isOver || ((phase === 'ready' || phase === 'kept') && seedVolume === undefined);
}

function hostsToQuery(context: ReconcileContext, view: RegionView): readonly string[] {
  const { seeds } = context.region(view.region).storage;
  const having = view.hosts.filter(
    ({ online, storages }) =>
      online && storages.some(({ name, active }) => name === seeds && active),
  );
  const isShared = having.some(({ storages }) =>
    storages.some(({ name, shared }) => name === seeds && shared),
  );
  return (isShared ? having.slice(0, 1) : having).map(({ name }) => name);
}

async function seedsOn(
  context: ReconcileContext,
  region: string,
  host: string,
): Promise<readonly SeedFound[]> {
  const { seeds } = context.region(region).storage;
  const { cluster } = context.settings;
  try {
    const volumes = await context
      .hypervisor(region)
      .volumes(host, seeds, 'iso', context.readOptions);
    return volumes.flatMap(({ id, name }) => {
      const machine = seedOwner(name, cluster);
      return machine === undefined ? [] : [{ region, host, volume: id, machine }];
    });
  } catch (error) {
    // A storage that cannot be read is listed by a later sweep.
    if (isMachineError(error)) return [];
    throw error;
  }
}

function machineOf(context: ReconcileContext, text: string): Machine | undefined {
  const id = parseMachineId(text);
  return id.ok ? context.records.find(id.value) : undefined;
}

// Removes old records. Records of deleted machines stay for the cool-down of their VM ids and addresses, and as long as a
// VM that was left alone has the addresses.

const MINUTE_MS = 60_000;
/** Longer than the cool-down itself, so that no id is free before its record is removed. */
const GONE_MS = COOL_DOWN_MS + 5 * MINUTE_MS;
const FAILED_MS = 60 * MINUTE_MS;
const INTENT_MS = 60 * MINUTE_MS;

const JOURNAL_MS = 30 * 24 * 60 * MINUTE_MS;
const JOURNAL_KEPT = 100_000;
const PRUNE_EVERY_MS = 60 * MINUTE_MS;

export async function collectGarbage(context: ReconcileContext): Promise<void> {
  await prune(context);
  await collectKept(context);
  await releaseAddressesLeft(context);
  await collectMachines(context);
  const { records, now } = context;
  await collectDrains(context);
  for (const { id, state, requestedAt } of records.intents) {
    if (state === 'done' && now - requestedAt > INTENT_MS) await records.removeIntent(id);
  }
}

async function prune(context: ReconcileContext): Promise<void> {
  const now = context.clock.monotonic();
  if (now - context.state.prunedAt < PRUNE_EVERY_MS) return;
  context.state.prunedAt = now;
  await context.pruneJournal({ beforeMs: context.now - JOURNAL_MS, keep: JOURNAL_KEPT });
}

/** An undone drain is shown for a while; one of a deleted machine goes with the record of the machine. */
async function collectDrains({ records, now }: ReconcileContext): Promise<void> {
  for (const { machine, state, stateSince } of records.drains) {
    const isOld = state === 'undone' && now - stateSince > INTENT_MS;
    if (isOld || records.find(machine) === undefined) await records.removeDrain(machine);
  }
}

/**
 * Deletes kept machines beyond the pool's `keepFailed`, the oldest first, and those whose VM a person has destroyed. A pool
 * that is not in the config keeps its machines.
 */
async function collectKept(context: ReconcileContext): Promise<void> {
  const { records, views } = context;
  const kept = records.index
    .inPhase('kept')
    .toSorted((a, b) => b.phaseSince - a.phaseSince || (a.id < b.id ? -1 : 1));
  for (const { id, pool: name, placement } of kept) {
    const pool = context.pool(name);
    const rank = kept.filter((one) => one.pool === name).findIndex((one) => one.id === id);
    const view = views.get(placement?.region ?? '');
    const isMissing = view !== undefined && !view.takenVmIds.includes(placement?.vmId ?? 0);
    if (isMissing || (pool !== undefined && rank >= pool.keepFailed)) {
      await records.move(id, 'deleting');
    }
  }
}

/** The cool-down of an address begins when the VM that was left alone with it is gone. */
async function releaseAddressesLeft(context: ReconcileContext): Promise<void> {
  const { records, now } = context;
  for (const machine of records.index.inPhase('gone', 'failed')) {
    if (machine.isVmLeft !== true || isVmStillLeft(context, machine)) continue;
    await records.update(machine.id, { isVmLeft: undefined, phaseSince: now });
  }
}

function isVmStillLeft(context: ReconcileContext, { placement }: Machine): boolean {
  if (placement === undefined || !context.isConfigured(placement.region)) return false;
  const { region, vmId } = placement;
  if (!context.views.has(region)) return true;
  const isThere = context.vmInView({ region, vmId }) !== undefined;
  return isThere && !context.records.index.isVmClaimed(region, vmId);
}

async function collectMachines({ records, state, now }: ReconcileContext): Promise<void> {
  for (const { id, phase, phaseSince, isVmLeft } of records.index.inPhase('gone', 'failed')) {
    if (isVmLeft === true) continue;
    const keptMs = phase === 'gone' ? GONE_MS : FAILED_MS;
    if (now - phaseSince <= keptMs) continue;
    await records.removeMachine(id);
    state.forget(id);
  }
}
