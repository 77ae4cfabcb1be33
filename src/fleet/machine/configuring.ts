// SPDX-License-Identifier: Apache-2.0
// configuring → starting: applies the specification to a clone, grows the disk, uploads and attaches the seed. Each step
// first checks whether it is already done, so that it can be interrupted anywhere.
import { NotFound } from '../../ports/errors.ts';
import type { VmConfig } from '../../ports/hypervisor.ts';
import {
  CONTINUE,
  type MachineReconcile,
  type ReconcileResult,
} from '../context/machine-reconcile.ts';

import type { PoolSettings } from '../context/settings.ts';
import { lookUpOwnVm } from './own-vm.ts';
import { uploadSeed } from './seed-volume.ts';
import { seedVolumeOf, specOf } from './vm-identity.ts';

export async function configuring(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const pool = reconcile.requirePool();
  const task = await reconcile.pollTask();
  if (task.state === 'running') return task.wait;
  const { config } = await lookUpOwnVm(reconcile);
  // A change needs the digest of the configuration that was verified to be ours, so the VM is looked up again after one.
  if (await isSpecChanged(reconcile, pool, config)) return CONTINUE;
  if (pool.source.kind !== 'netboot') {
    const growing = await growBootDisk(reconcile, config);
    if (growing !== undefined) return growing;
  }
  const volumeId = seedVolumeOf(reconcile);
  const isOnStorage = reconcile.machine.seedVolume === volumeId;
  const isUploaded = isOnStorage && task.state === 'ended' && task.kind === 'upload';
  if (pool.seed !== undefined && config.seedVolume !== volumeId) {
    if (!isUploaded) return uploadSeed(reconcile, pool, pool.seed);
    await reconcile.hypervisor.attachSeed(reconcile.vm, volumeId, {
      digest: config.digest,
      ...reconcile.context.writeOptions(),
    });
  }
  reconcile.context.state.tokens.delete(reconcile.id);
  // A crash may have lost the record of a seed that the VM already has.
  const seed = pool.seed !== undefined && { seedVolume: volumeId };
  return reconcile.move('starting', { configured: true, ...seed });
}

async function isSpecChanged(
  reconcile: MachineReconcile,
  pool: PoolSettings,
  { digest, smbiosUuid }: VmConfig,
): Promise<boolean> {
  // By the VM too: the pool may have had another source when it was cloned.
  if (pool.source.kind !== 'template' && smbiosUuid === reconcile.id) return false;
  const { hypervisor, vm, context } = reconcile;
  const spec = specOf(reconcile, pool);
  return hypervisor.applySpec(vm, spec, { digest, ...context.writeOptions() });
}

/** Undefined when the disk is large enough. */
async function growBootDisk(
  reconcile: MachineReconcile,
  { bootDisk, vmId, digest }: VmConfig,
): Promise<ReconcileResult | undefined> {
  if (bootDisk === undefined) throw new NotFound('VOLUME_NOT_FOUND', `VM ${vmId} has no disk`);
  const { diskBytes } = reconcile.machine.size;
  if (bootDisk.bytes >= diskBytes) return undefined;
  const task = await reconcile.hypervisor.growBootDisk(reconcile.vm, diskBytes, {
    digest,
    ...reconcile.context.writeOptions(),
  });
  return task === undefined ? undefined : reconcile.recordTask(task);
}
