// SPDX-License-Identifier: Apache-2.0
// DELETE /nodes/{node}/qemu/{vmid}: checks before and inside the task, then removes disks, then all records of the VM.
import { ROOT_USER } from '../access/permissions.ts';
import { errorText, parameterError, serverError } from '../api-error.ts';
import { type Call, type Core, withVmLock } from '../core.ts';
import type { Vm } from '../state/model.ts';
import { freeVolume } from '../storage/allocation.ts';
import { findLinkedClones, splitVolumeId, volumesOn } from '../storage/volumes.ts';
import { SIMULATED_DURATIONS_MS } from '../tasks/durations.ts';
import type { TaskContext } from '../tasks/engine.ts';
import { checkLock, isTemplate, loadVm, requireWritable } from './config.ts';
import { isPlainCdrom, parseDrives, parseNics } from './drives.ts';

function checkDestroyable(call: Call, id: number): Vm {
  const vm = loadVm(call.core, call.host, id);
  if (vm.config['protection'] === '1')
    throw serverError(`can't remove VM ${id} - protection mode enabled`);
  if (!call.flag('purge') && call.state.ha.has(`vm:${id}`)) {
    throw serverError(
      `unable to remove VM ${id} - used in HA resources and purge parameter not set.`,
    );
  }
  if (vm.running !== undefined) throw serverError(`VM ${id} is running - destroy failed`);
  return vm;
}

/** Volumes that the config refers to and the VM owns. */
export function findOwnedVolumes(core: Core, vm: Vm): readonly string[] {
  const used = parseDrives(vm.config)
    .filter(([, drive]) => !isPlainCdrom(drive))
    .map(([, drive]) => drive.file);
  const unused = Object.entries(vm.config)
    .filter(([name]) => /^unused\d+$/.test(name))
    .map(([, value]) => value.split(',')[0] ?? '');
  const waiting = parseDrives(vm.pending)
    .filter(([, drive]) => !isPlainCdrom(drive))
    .map(([, drive]) => drive.file);
  return [...new Set([...used, ...unused, ...waiting])].filter((file) => {
    const id = splitVolumeId(file);
    const storage = id === undefined ? undefined : core.state.storages.get(id.storage);
    if (id === undefined || storage === undefined) return false;
    return volumesOn(storage, vm.host).get(id.name)?.vmId === vm.id;
  });
}

function checkBases(core: Core, vm: Vm): void {
  for (const file of findOwnedVolumes(core, vm)) {
    const id = splitVolumeId(file);
    const storage = core.state.storages.get(id?.storage ?? '');
    if (id === undefined || storage === undefined) continue;
    if (findLinkedClones(storage, vm.host, id.name).length > 0) {
      throw serverError(`base volume '${file}' is still in use by linked cloned`);
    }
  }
}

function findUnreferencedVolumes(core: Core, vm: Vm): readonly string[] {
  const found: string[] = [];
  for (const storage of core.state.storages.values()) {
    if (!storage.enabled || !storage.content.includes('images')) continue;
    for (const volume of volumesOn(storage, vm.host).values()) {
      if (volume.vmId === vm.id && volume.content === 'images')
        found.push(`${storage.id}:${volume.name}`);
    }
  }
  return found;
}

async function removeVolumes(
  core: Core,
  vm: Vm,
  at: { readonly volumes: readonly string[]; readonly context: TaskContext },
): Promise<void> {
  const { volumes, context } = at;
  for (const volumeId of volumes) {
    try {
      await freeVolume(core, { host: vm.host, volumeId }, context.work);
    } catch (error) {
      if (context.signal.aborted) throw error;
      context.warn(`Could not remove disk '${volumeId}', check manually: ${errorText(error)}`);
    }
  }
}

/** Removes the VM, its leases, pool memberships and ACL entries; the id is free again. */
export function removeVmRecords(core: Core, vm: Vm): void {
  const { state } = core;
  for (const [, nic] of parseNics(vm.config)) state.dhcpLeases.release(nic.mac ?? '');
  state.vms.delete(vm.id);
  for (const pool of state.pools.values()) pool.vms.delete(vm.id);
  state.acl = state.acl.filter((entry) => entry.path !== `/vms/${vm.id}`);
  state.accessVersion += 1;
}

async function destroyTask(call: Call, id: number, context: TaskContext): Promise<void> {
  const { core } = call;
  await withVmLock(core, { host: call.host, id }, async () => {
    const vm = checkDestroyable(call, id);
    if (!call.flag('skiplock') && vm.config['lock'] !== 'suspended') checkLock(vm);
    if (isTemplate(vm)) checkBases(core, vm);
    requireWritable(core, vm);
    await context.work(SIMULATED_DURATIONS_MS.destroy);
    await removeVolumes(core, vm, { volumes: findOwnedVolumes(core, vm), context });
    if (call.flag('destroy-unreferenced-disks')) {
      await removeVolumes(core, vm, { volumes: findUnreferencedVolumes(core, vm), context });
    }
    if (call.flag('purge')) {
      context.log(`purging VM ${id} from related configurations..`);
      core.state.ha.delete(`vm:${id}`);
    }
    removeVmRecords(core, vm);
  });
}

export function destroyVm(call: Call): string {
  const id = call.integer('vmid');
  if (call.flag('skiplock') && call.authUser !== ROOT_USER) {
    throw parameterError({ skiplock: 'Only root may use this option.' });
  }
  checkDestroyable(call, id);
  return call.forkTask({ type: 'qmdestroy', id }, (context) => destroyTask(call, id, context));
}
