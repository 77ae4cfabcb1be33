// SPDX-License-Identifier: Apache-2.0
// The seed ISO of a machine on its storage: upload, eject, delete.
import type { Host } from '../../model/host.ts';
import type { VmConfig } from '../../ports/hypervisor.ts';
import {
  type MachineReconcile,
  type ReconcileResult,
  requeue,
} from '../context/machine-reconcile.ts';

import type { PoolSettings, SeedSettings } from '../context/settings.ts';
import { resolveSeedJoin, seedBytes } from './seed.ts';

import { seedFileName, seedVolumeOf } from './vm-identity.ts';

const UPLOAD_RECHECK_MS = 1_000;

/** The volume is recorded first: a file that arrives after a crash is found and removed. */
export async function uploadSeed(
  reconcile: MachineReconcile,
  { network }: PoolSettings,
  seed: SeedSettings,
): Promise<ReconcileResult> {
  const { host } = reconcile.placement;
  // The config names another storage now; the record names one volume.
  if (reconcile.machine.seedVolume !== seedVolumeOf(reconcile)) await deleteSeed(reconcile);
  if (reconcile.machine.seedVolume === undefined) {
    await reconcile.update({ seedVolume: seedVolumeOf(reconcile) });
  } else if (await isUploadInProgress(reconcile)) {
    return requeue(UPLOAD_RECHECK_MS, 'an earlier upload of its seed may be running');
  }
  const bytes = seedBytes(
    reconcile,
    { seed, network },
    await resolveSeedJoin(reconcile, seed.join),
  );
  const name = seedFileName(reconcile.context.settings.cluster, reconcile.id);
  const file = { host, storage: reconcile.region.storage.seeds, name, bytes };
  return reconcile.recordTask(
    await reconcile.hypervisor.uploadIso(file, reconcile.context.writeOptions()),
  );
}

/**
 * Whether an upload that no record names may still be running: it would restore the file after its deletion. The task
 * names no file; uploads of other machines are known by their records.
 */
export async function isUploadInProgress(reconcile: MachineReconcile): Promise<boolean> {
  const { host } = reconcile.placement;
  const { records, readOptions } = reconcile.context;
  const known = new Set(records.machines.map(({ task }) => task?.upid));
  const running = await reconcile.hypervisor.runningTasks(host, 'upload', readOptions);
  return running.some(({ upid }) => !known.has(upid));
}

/** Whether the seed of a ready machine is deleted or being deleted. */
export async function isSeedRemoved(reconcile: MachineReconcile): Promise<boolean> {
  if (reconcile.machine.seedVolume === undefined) return true;
  const { state, records } = reconcile.context;
  const removal = state.seedRemovals.takeResult(reconcile.id);
  // Not deferred: a command in another process that waits for the machine waits for this too.
  if (removal === 'done') await records.update(reconcile.id, { seedVolume: undefined });
  return removal !== 'none';
}

/**
 * Ejects the seed of a ready machine and deletes it: it contains secrets and has been read. The deletion runs in the
 * background, because it waits for the lock of a storage that others use.
 */
export async function removeSeed(reconcile: MachineReconcile, config: VmConfig): Promise<void> {
  const { seedVolume: volume } = reconcile.machine;
  const { state } = reconcile.context;
  if (volume === undefined || state.seedRemovals.isRunning(reconcile.id)) return;
  if (config.seedVolume === volume) {
    const { digest } = config;
    await reconcile.hypervisor.ejectSeed(reconcile.vm, {
      digest,
      ...reconcile.context.writeOptions(),
    });
  }
  const { host } = reconcile.placement;
  const deletion = reconcile.hypervisor.deleteVolume(
    host,
    volume,
    reconcile.context.writeOptions(),
  );
  state.seedRemovals.begin(reconcile.id, deletion);
}

/** Deletes the seed of a machine that is being deleted. */
export async function deleteSeed(reconcile: MachineReconcile): Promise<void> {
  const { placement, seedVolume } = reconcile.machine;
  if (placement === undefined || seedVolume === undefined) return;
  await reconcile.hypervisor.deleteVolume(
    seedHost(reconcile),
    seedVolume,
    reconcile.context.writeOptions(),
  );
  await reconcile.update({ seedVolume: undefined });
}

/**
 * The host that deletes the seed: the machine's own, or another that has the storage if its own is down or no longer in
 * the cluster. A seed on local storage of a removed host is gone with it, and deleting a missing volume succeeds.
 */
function seedHost({ placement, region, context }: MachineReconcile): string {
  const hosts = context.views.get(placement.region)?.hosts ?? [];
  const own = hosts.find(({ name }) => name === placement.host);
  if (own?.online === true) return own.name;
  const { seeds } = region.storage;
  const others = hosts.filter((host) => host.online && hasStorage(host, seeds));
  const isShared = others.some((host) => hasStorage(host, seeds, true));
  const canUseAnother = isShared || own === undefined;
  return (canUseAnother ? others[0]?.name : undefined) ?? placement.host;
}

function hasStorage({ storages }: Host, wanted: string, isShared = false): boolean {
  return storages.some(
    ({ name, active, shared }) => name === wanted && active && (shared || !isShared),
  );
}
