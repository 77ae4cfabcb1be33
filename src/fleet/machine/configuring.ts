// SPDX-License-Identifier: Apache-2.0
// configuring → starting. Every step looks first whether it is done, so that it may be interrupted anywhere.
import { Conflict, NotFound } from '../../ports/errors.ts';
import type { VmConfig } from '../../ports/hypervisor.ts';
import type { MachineReconcile, Step } from '../context/machine-reconcile.ts';
import type { PoolSettings } from '../context/settings.ts';
import { bootDiskSlot, cloneChanges } from './clone-options.ts';
import { poolOf } from './creating.ts';
import { cloudInitDrives, isProtected } from './inherited.ts';
import { joinOfSeed } from './join-input.ts';
import { seedBytes } from './seed.ts';
import { seedFileName } from './vm-identity.ts';
import { lookUpVm, type VmLookup } from './vm-lookup.ts';

const SEED_SLOT = 'ide2';

export async function configuring(reconcile: MachineReconcile): Promise<Step> {
  const pool = poolOf(reconcile);
  const task = await reconcile.pollTask();
  if (task.state === 'running') return 'wait';
  if (task.state === 'ended' && task.failure !== undefined) {
    await reconcile.update({ task: undefined });
    throw task.failure;
  }
  const { config } = requireOurs(await lookUpVm(reconcile), reconcile);
  if (pool.source.kind === 'template') await identify(reconcile, pool, config);
  if (pool.source.kind !== 'netboot' && (await isGrowing(reconcile, config))) return 'wait';
  const isUploaded = task.state === 'ended' && task.type === 'imgcopy';
  if (pool.seed !== undefined && !isAttached(reconcile, config)) {
    if (!isUploaded) return upload(reconcile, pool);
    await attach(reconcile);
  }
  reconcile.context.state.tokens.delete(reconcile.id);
  return reconcile.move('starting', { configured: true });
}

/** Everything but what is ours ends the work on this VM: it is not there any more, or not ours any more. */
export function requireOurs(
  lookup: VmLookup,
  reconcile: MachineReconcile,
): Extract<VmLookup, { kind: 'ours' }> {
  if (lookup.kind === 'ours') return lookup;
  // A backup is being put back in its place: when that is done, it is ours or not.
  if (lookup.kind === 'undecided') {
    throw new Conflict('VM_LOCKED', `VM ${reconcile.vm.vmId} is locked (${lookup.lock})`);
  }
  const why = lookup.kind === 'foreign' ? `is not ours any more: ${lookup.reason}` : 'is gone';
  throw new NotFound('VM_NOT_FOUND', `VM ${reconcile.vm.vmId} ${why}`);
}

async function identify(
  reconcile: MachineReconcile,
  pool: PoolSettings,
  config: VmConfig,
): Promise<void> {
  // In a change of its own: as long as a VM is protected, Proxmox takes no drive from it.
  if (isProtected(config)) {
    await reconcile.hypervisor.configureVm(
      reconcile.vm,
      { remove: ['protection'] },
      reconcile.context.writeOptions,
    );
  }
  const set = cloneChanges(config, reconcile.machine, { pool, region: reconcile.region });
  const remove = otherSeeds(pool, config);
  if (Object.keys(set).length === 0 && remove.length === 0) return;
  await reconcile.hypervisor.configureVm(
    reconcile.vm,
    { set, remove },
    reconcile.context.writeOptions,
  );
}

/** The one in the seed's own slot makes room for it by itself. */
function otherSeeds({ seed }: PoolSettings, config: VmConfig): readonly string[] {
  if (seed === undefined) return [];
  return cloudInitDrives(config).filter((slot) => slot !== SEED_SLOT);
}

async function isGrowing(reconcile: MachineReconcile, config: VmConfig): Promise<boolean> {
  const slot = bootDiskSlot(config);
  if (slot === undefined) throw new NotFound('VOLUME_NOT_FOUND', `VM ${config.vmId} has no disk`);
  const bytes = reconcile.machine.size.diskBytes;
  const task = await reconcile.hypervisor.growDisk(
    reconcile.vm,
    { slot, bytes },
    reconcile.context.writeOptions,
  );
  if (task === undefined) return false;
  await reconcile.recordTask(task);
  return true;
}

function seedVolume(reconcile: MachineReconcile): string {
  const name = seedFileName(reconcile.context.settings.cluster, reconcile.id);
  return `${reconcile.region.storage.seeds}:iso/${name}`;
}

function isAttached(reconcile: MachineReconcile, config: VmConfig): boolean {
  return (config.options[SEED_SLOT] ?? '').split(',')[0] === seedVolume(reconcile);
}

/** The volume is written down first: a file that arrives after a crash is known to whoever cleans up. */
async function upload(reconcile: MachineReconcile, pool: PoolSettings): Promise<Step> {
  const { seed } = pool;
  if (seed === undefined) return 'again';
  const { host } = reconcile.placement;
  if (reconcile.machine.seedVolume === undefined)
    await reconcile.update({ seedVolume: seedVolume(reconcile) });
  else if (await isUploadInProgress(reconcile)) return 'wait';
  const { network } = pool;
  const bytes = seedBytes(reconcile, { seed, network }, await joinOfSeed(reconcile, seed.join));
  const name = seedFileName(reconcile.context.settings.cluster, reconcile.id);
  const storage = reconcile.region.storage.seeds;
  return reconcile.recordTask(
    await reconcile.hypervisor.uploadIso(
      { host, storage, name, bytes },
      reconcile.context.writeOptions,
    ),
  );
}

/**
 * Whether an upload that nobody followed may still be running: it would put the file back after it was deleted. Its
 * task names no file; those of other machines are known by their records.
 */
export async function isUploadInProgress(reconcile: MachineReconcile): Promise<boolean> {
  const { host } = reconcile.placement;
  const known = new Set(reconcile.context.records.machines.map(({ task }) => task?.upid));
  const running = await reconcile.hypervisor.runningTasks(
    host,
    'imgcopy',
    reconcile.context.readOptions,
  );
  return running.some(({ upid }) => !known.has(upid));
}

function attach(reconcile: MachineReconcile): Promise<void> {
  const set = { [SEED_SLOT]: `${seedVolume(reconcile)},media=cdrom` };
  return reconcile.hypervisor.configureVm(reconcile.vm, { set }, reconcile.context.writeOptions);
}

/** Whether nothing has to be done about it now: it is gone, or on its way out. */
export async function isSeedRemoved(reconcile: MachineReconcile): Promise<boolean> {
  if (reconcile.machine.seedVolume === undefined) return true;
  const removal = reconcile.context.state.seedRemovals.takeResult(reconcile.id);
  if (removal === 'done') await reconcile.update({ seedVolume: undefined });
  return removal !== 'none';
}

/**
 * Takes the seed out and deletes it: what it says is secret and has been read. Deleting waits for the lock of a
 * storage that may be everybody's; the round does not.
 */
export async function removeSeed(reconcile: MachineReconcile, config: VmConfig): Promise<void> {
  const { seedVolume: volume } = reconcile.machine;
  const { seedRemovals } = reconcile.context.state;
  if (volume === undefined || seedRemovals.isRunning(reconcile.id)) return;
  if ((config.options[SEED_SLOT] ?? '').startsWith(volume)) {
    const set = { [SEED_SLOT]: 'none,media=cdrom' };
    await reconcile.hypervisor.configureVm(reconcile.vm, { set }, reconcile.context.writeOptions);
  }
  const { host } = reconcile.placement;
  seedRemovals.begin(
    reconcile.id,
    reconcile.hypervisor.deleteVolume(host, volume, reconcile.context.writeOptions),
  );
}
