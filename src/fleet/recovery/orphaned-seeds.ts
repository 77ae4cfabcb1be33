// SPDX-License-Identifier: Apache-2.0
// Things of ours without their machine: seeds on the storages kept for them, addresses in the records.
import type { Machine } from '../../model/machine.ts';
import { parseMachineId } from '../../model/machine-id.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import { isMachineError } from '../context/machine-error.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { seedOwner } from '../machine/vm-identity.ts';

const SWEEP_EVERY_MS = 5 * 60_000;

export interface SeedFound {
  readonly region: string;
  readonly host: string;
  readonly volume: string;
  readonly machine: string;
}

export async function removeOrphanedSeeds(
  context: ReconcileContext,
  undecided: ReadonlySet<string>,
): Promise<void> {
  await releaseOrphanAddresses(context);
  if (context.now - context.state.sweptAt < SWEEP_EVERY_MS) return;
  context.state.sweptAt = context.now;
  for (const view of context.views.values()) {
    for (const seed of await orphanSeeds(context, view)) {
      await judgeSeed(context, seed, undecided.has(view.region));
    }
  }
}

async function judgeSeed(
  context: ReconcileContext,
  seed: SeedFound,
  isUndecided: boolean,
): Promise<void> {
  const known = machineOf(context, seed.machine);
  const mayDelete = known !== undefined || (context.settings.orphans === 'delete' && !isUndecided);
  const subject = { region: seed.region, host: seed.host, machine: seed.machine };
  if (mayDelete && !(await isDeleted(context, seed))) return;
  await context.recordOnce(seed.volume, {
    kind: mayDelete ? 'did' : 'saw',
    subject,
    reason: 'OrphanSeed',
    message: `${seed.volume} belongs to no machine${mayDelete ? ' and was removed' : ''}`,
  });
}

/** One that cannot be deleted now is tried again with the next sweep. */
async function isDeleted(context: ReconcileContext, seed: SeedFound): Promise<boolean> {
  const { region, host, volume, machine } = seed;
  try {
    await context.hypervisor(region).deleteVolume(host, volume, context.writeOptions);
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

/** Seeds whose machine is over, unknown, or done with them. */
export async function orphanSeeds(
  context: ReconcileContext,
  view: RegionView,
): Promise<readonly SeedFound[]> {
  const found: SeedFound[] = [];
  for (const host of hostsToAsk(context, view)) {
    found.push(...(await seedsOn(context, view.region, host)));
  }
  return found.filter(({ machine }) => {
    const known = machineOf(context, machine);
    return known === undefined || hasNoUse(known);
  });
}

/** Over, or ready and rid of its seed: then this is a late upload. */
function hasNoUse({ phase, seedVolume }: Machine): boolean {
  return phase === 'gone' || phase === 'failed' || (phase === 'ready' && seedVolume === undefined);
}

function hostsToAsk(context: ReconcileContext, view: RegionView): readonly string[] {
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
    return volumes.flatMap(({ id }) => {
      const machine = seedOwner(id, cluster);
      return machine === undefined ? [] : [{ region, host, volume: id, machine }];
    });
  } catch (error) {
    // A storage that cannot be read now is swept another time.
    if (isMachineError(error)) return [];
    throw error;
  }
}

function machineOf(context: ReconcileContext, text: string): Machine | undefined {
  const id = parseMachineId(text);
  return id.ok ? context.records.find(id.value) : undefined;
}

/** A lease outlives its machine only through a crash between two writes. */
async function releaseOrphanAddresses(context: ReconcileContext): Promise<void> {
  for (const { machine, releasedAt } of context.records.addresses) {
    if (releasedAt !== undefined) continue;
    const holder = context.records.find(machine);
    if (holder === undefined || holder.phase === 'gone' || holder.phase === 'failed') {
      await context.records.releaseAddresses(machine);
    }
  }
}
