// SPDX-License-Identifier: Apache-2.0
// configuring → starting. Every step looks first whether it is done, so that it may be interrupted anywhere.
import { Conflict, NotFound } from '../../ports/errors.ts';
import type { VmConfig } from '../../ports/hypervisor.ts';
import { joinOfSeed } from '../nodes/join-input.ts';
import type { PoolSettings } from '../settings.ts';
import { bootDiskSlot, cloneChanges } from './clone-options.ts';
import { poolOf } from './creating.ts';
import { seedFileName } from './identity.ts';
import { cloudInitDrives, isProtected } from './inherited.ts';
import type { Job, Step } from './job.ts';
import { look, type Sight } from './look.ts';
import { seedBytes } from './seed.ts';

const SEED_SLOT = 'ide2';

export async function configuring(job: Job): Promise<Step> {
  const pool = poolOf(job);
  const task = await job.task();
  if (task.state === 'running') return 'wait';
  if (task.state === 'ended' && task.failure !== undefined) {
    await job.update({ task: undefined });
    throw task.failure;
  }
  const { config } = requireOurs(await look(job), job);
  if (pool.source.kind === 'template') await identify(job, pool, config);
  if (pool.source.kind !== 'netboot' && (await isGrowing(job, config))) return 'wait';
  const isUploaded = task.state === 'ended' && task.type === 'imgcopy';
  if (pool.seed !== undefined && !isAttached(job, config)) {
    if (!isUploaded) return upload(job, pool);
    await attach(job);
  }
  job.turn.memory.tokens.delete(job.id);
  return job.move('starting', { configured: true });
}

/** Everything but what is ours ends the work on this VM: it is not there any more, or not ours any more. */
export function requireOurs(sight: Sight, job: Job): Extract<Sight, { kind: 'ours' }> {
  if (sight.kind === 'ours') return sight;
  // A backup is being put back in its place: when that is done, it is ours or not.
  if (sight.kind === 'undecided') {
    throw new Conflict('VM_LOCKED', `VM ${job.vm.vmId} is locked (${sight.lock})`);
  }
  const why = sight.kind === 'foreign' ? `is not ours any more: ${sight.reason}` : 'is gone';
  throw new NotFound('VM_NOT_FOUND', `VM ${job.vm.vmId} ${why}`);
}

async function identify(job: Job, pool: PoolSettings, config: VmConfig): Promise<void> {
  // In a change of its own: as long as a VM is protected, Proxmox takes no drive from it.
  if (isProtected(config)) {
    await job.hypervisor.configureVm(job.vm, { remove: ['protection'] }, job.turn.acting);
  }
  const set = cloneChanges(config, job.machine, { pool, region: job.region });
  const remove = otherSeeds(pool, config);
  if (Object.keys(set).length === 0 && remove.length === 0) return;
  await job.hypervisor.configureVm(job.vm, { set, remove }, job.turn.acting);
}

/** The one in the seed's own slot makes room for it by itself. */
function otherSeeds({ seed }: PoolSettings, config: VmConfig): readonly string[] {
  if (seed === undefined) return [];
  return cloudInitDrives(config).filter((slot) => slot !== SEED_SLOT);
}

async function isGrowing(job: Job, config: VmConfig): Promise<boolean> {
  const slot = bootDiskSlot(config);
  if (slot === undefined) throw new NotFound('VOLUME_NOT_FOUND', `VM ${config.vmId} has no disk`);
  const bytes = job.machine.size.diskBytes;
  const task = await job.hypervisor.growDisk(job.vm, { slot, bytes }, job.turn.acting);
  if (task === undefined) return false;
  await job.started(task);
  return true;
}

function seedVolume(job: Job): string {
  const name = seedFileName(job.turn.settings.cluster, job.id);
  return `${job.region.storage.seeds}:iso/${name}`;
}

function isAttached(job: Job, config: VmConfig): boolean {
  return (config.options[SEED_SLOT] ?? '').split(',')[0] === seedVolume(job);
}

/** The volume is written down first: a file that arrives after a crash is known to whoever cleans up. */
async function upload(job: Job, pool: PoolSettings): Promise<Step> {
  const { seed } = pool;
  if (seed === undefined) return 'again';
  const { host } = job.placement;
  if (job.machine.seedVolume === undefined) await job.update({ seedVolume: seedVolume(job) });
  else if (await isUploadUnderWay(job)) return 'wait';
  const { network } = pool;
  const bytes = seedBytes(job, { seed, network }, await joinOfSeed(job, seed.join));
  const name = seedFileName(job.turn.settings.cluster, job.id);
  const storage = job.region.storage.seeds;
  return job.started(
    await job.hypervisor.uploadIso({ host, storage, name, bytes }, job.turn.acting),
  );
}

/**
 * Whether an upload that nobody followed may still be running: it would put the file back after it was deleted. Its
 * task names no file; those of other machines are known by their records.
 */
export async function isUploadUnderWay(job: Job): Promise<boolean> {
  const { host } = job.placement;
  const known = new Set(job.turn.books.machines.map(({ task }) => task?.upid));
  const running = await job.hypervisor.runningTasks(host, 'imgcopy', job.turn.reading);
  return running.some(({ upid }) => !known.has(upid));
}

function attach(job: Job): Promise<void> {
  const set = { [SEED_SLOT]: `${seedVolume(job)},media=cdrom` };
  return job.hypervisor.configureVm(job.vm, { set }, job.turn.acting);
}

/** Whether nothing has to be done about it now: it is gone, or on its way out. */
export async function isSeedSeenTo(job: Job): Promise<boolean> {
  if (job.machine.seedVolume === undefined) return true;
  const removal = job.turn.memory.seedRemovals.take(job.id);
  if (removal === 'done') await job.update({ seedVolume: undefined });
  return removal !== 'none';
}

/**
 * Takes the seed out and deletes it: what it says is secret and has been read. Deleting waits for the lock of a
 * storage that may be everybody's; the round does not.
 */
export async function removeSeed(job: Job, config: VmConfig): Promise<void> {
  const { seedVolume: volume } = job.machine;
  const { seedRemovals } = job.turn.memory;
  if (volume === undefined || seedRemovals.isRunning(job.id)) return;
  if ((config.options[SEED_SLOT] ?? '').startsWith(volume)) {
    const set = { [SEED_SLOT]: 'none,media=cdrom' };
    await job.hypervisor.configureVm(job.vm, { set }, job.turn.acting);
  }
  const { host } = job.placement;
  seedRemovals.begin(job.id, job.hypervisor.deleteVolume(host, volume, job.turn.acting));
}
