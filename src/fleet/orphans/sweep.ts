// SPDX-License-Identifier: Apache-2.0
// Things of ours without their machine: seeds on the storages kept for them, addresses in the records.
import type { Machine } from '../../model/machine.ts';
import { parseMachineId } from '../../model/machine-id.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import { seedOwner } from '../lifecycle/identity.ts';
import { isLocalTrouble } from '../trouble.ts';
import type { Turn } from '../turn.ts';

const SWEEP_EVERY_MS = 5 * 60_000;

export interface SeedFound {
  readonly region: string;
  readonly host: string;
  readonly volume: string;
  readonly machine: string;
}

export async function sweep(turn: Turn, undecided: ReadonlySet<string>): Promise<void> {
  await releaseOrphanAddresses(turn);
  if (turn.now - turn.memory.sweptAt < SWEEP_EVERY_MS) return;
  turn.memory.sweptAt = turn.now;
  for (const view of turn.views.values()) {
    for (const seed of await orphanSeeds(turn, view)) {
      await judgeSeed(turn, seed, undecided.has(view.region));
    }
  }
}

async function judgeSeed(turn: Turn, seed: SeedFound, isUndecided: boolean): Promise<void> {
  const known = machineOf(turn, seed.machine);
  const mayDelete = known !== undefined || (turn.settings.orphans === 'delete' && !isUndecided);
  const subject = { region: seed.region, host: seed.host, machine: seed.machine };
  if (mayDelete && !(await isDeleted(turn, seed))) return;
  await turn.tellOnce(seed.volume, {
    kind: mayDelete ? 'did' : 'saw',
    subject,
    reason: 'OrphanSeed',
    message: `${seed.volume} belongs to no machine${mayDelete ? ' and was removed' : ''}`,
  });
}

/** One that cannot be deleted now is tried again with the next sweep. */
async function isDeleted(turn: Turn, seed: SeedFound): Promise<boolean> {
  const { region, host, volume, machine } = seed;
  try {
    await turn.hypervisor(region).deleteVolume(host, volume, turn.acting);
    return true;
  } catch (error) {
    if (!isLocalTrouble(error)) throw error;
    await turn.tellOnce(volume, {
      kind: 'failed',
      subject: { region, host, machine },
      reason: error.code,
      message: `${volume} belongs to no machine and could not be removed: ${error.message}`,
    });
    return false;
  }
}

/** Seeds whose machine is over, unknown, or done with them. */
export async function orphanSeeds(turn: Turn, view: RegionView): Promise<readonly SeedFound[]> {
  const found: SeedFound[] = [];
  for (const host of hostsToAsk(turn, view)) {
    found.push(...(await seedsOn(turn, view.region, host)));
  }
  return found.filter(({ machine }) => {
    const known = machineOf(turn, machine);
    return known === undefined || hasNoUse(known);
  });
}

/** Over, or ready and rid of its seed: then this is a late upload. */
function hasNoUse({ phase, seedVolume }: Machine): boolean {
  return phase === 'gone' || phase === 'failed' || (phase === 'ready' && seedVolume === undefined);
}

function hostsToAsk(turn: Turn, view: RegionView): readonly string[] {
  const { seeds } = turn.region(view.region).storage;
  const having = view.hosts.filter(
    ({ online, storages }) =>
      online && storages.some(({ name, active }) => name === seeds && active),
  );
  const isShared = having.some(({ storages }) =>
    storages.some(({ name, shared }) => name === seeds && shared),
  );
  return (isShared ? having.slice(0, 1) : having).map(({ name }) => name);
}

async function seedsOn(turn: Turn, region: string, host: string): Promise<readonly SeedFound[]> {
  const { seeds } = turn.region(region).storage;
  const { cluster } = turn.settings;
  try {
    const volumes = await turn.hypervisor(region).volumes(host, seeds, 'iso', turn.reading);
    return volumes.flatMap(({ id }) => {
      const machine = seedOwner(id, cluster);
      return machine === undefined ? [] : [{ region, host, volume: id, machine }];
    });
  } catch (error) {
    // A storage that cannot be read now is swept another time.
    if (isLocalTrouble(error)) return [];
    throw error;
  }
}

function machineOf(turn: Turn, text: string): Machine | undefined {
  const id = parseMachineId(text);
  return id.ok ? turn.books.find(id.value) : undefined;
}

/** A lease outlives its machine only through a crash between two writes. */
async function releaseOrphanAddresses(turn: Turn): Promise<void> {
  for (const { machine, releasedAt } of turn.books.addresses) {
    if (releasedAt !== undefined) continue;
    const holder = turn.books.find(machine);
    if (holder === undefined || holder.phase === 'gone' || holder.phase === 'failed') {
      await turn.books.releaseAddresses(machine);
    }
  }
}
