// SPDX-License-Identifier: Apache-2.0
// DELETE /nodes/{node}/qemu/{vmid}: checks before and again inside the task, then disks, then the last traces.
import { ROOT } from '../access/permissions.ts';
import { failure, parameterError, textOf } from '../api-error.ts';
import { type Call, type Core, withVmLock } from '../core.ts';
import { clonesOf, splitVolumeId, volumesOn } from '../storage/volumes.ts';
import { free } from '../storage/work.ts';
import { SIMULATED_DURATIONS } from '../tasks/durations.ts';
import type { TaskContext } from '../tasks/engine.ts';
import type { Vm } from '../world/model.ts';
import { checkLock, isTemplate, requireWritable, vmOn } from './config.ts';
import { drivesOf, isPlainCdrom, nicsOf } from './drives.ts';

function earlyChecks(call: Call, id: number): Vm {
  const vm = vmOn(call.core, call.host, id);
  if (vm.config['protection'] === '1')
    throw failure(`can't remove VM ${id} - protection mode enabled`);
  if (!call.flag('purge') && call.world.ha.has(`vm:${id}`)) {
    throw failure(`unable to remove VM ${id} - used in HA resources and purge parameter not set.`);
  }
  if (vm.running !== undefined) throw failure(`VM ${id} is running - destroy failed`);
  return vm;
}

/** Everything on a storage that the config names and the VM owns. */
export function ownedVolumes(core: Core, vm: Vm): readonly string[] {
  const used = drivesOf(vm.config)
    .filter(([, drive]) => !isPlainCdrom(drive))
    .map(([, drive]) => drive.file);
  const unused = Object.entries(vm.config)
    .filter(([name]) => /^unused\d+$/.test(name))
    .map(([, value]) => value.split(',')[0] ?? '');
  const waiting = drivesOf(vm.pending)
    .filter(([, drive]) => !isPlainCdrom(drive))
    .map(([, drive]) => drive.file);
  return [...new Set([...used, ...unused, ...waiting])].filter((file) => {
    const id = splitVolumeId(file);
    const storage = id === undefined ? undefined : core.world.storages.get(id.storage);
    if (id === undefined || storage === undefined) return false;
    return volumesOn(storage, vm.host).get(id.name)?.vmId === vm.id;
  });
}

function checkBases(core: Core, vm: Vm): void {
  for (const file of ownedVolumes(core, vm)) {
    const id = splitVolumeId(file);
    const storage = core.world.storages.get(id?.storage ?? '');
    if (id === undefined || storage === undefined) continue;
    if (clonesOf(storage, vm.host, id.name).length > 0) {
      throw failure(`base volume '${file}' is still in use by linked cloned`);
    }
  }
}

function unreferenced(core: Core, vm: Vm): readonly string[] {
  const found: string[] = [];
  for (const storage of core.world.storages.values()) {
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
      await free(core, { host: vm.host, volumeId }, context.work);
    } catch (error) {
      if (context.signal.aborted) throw error;
      context.warn(`Could not remove disk '${volumeId}', check manually: ${textOf(error)}`);
    }
  }
}

/** The id is free again, with everything that knew it. */
export function forgetVm(core: Core, vm: Vm): void {
  const { world } = core;
  for (const [, nic] of nicsOf(vm.config)) world.leases.release(nic.mac ?? '');
  world.vms.delete(vm.id);
  for (const pool of world.pools.values()) pool.vms.delete(vm.id);
  world.acl = world.acl.filter((entry) => entry.path !== `/vms/${vm.id}`);
  world.accessVersion += 1;
}

async function destroyTask(call: Call, id: number, context: TaskContext): Promise<void> {
  const { core } = call;
  await withVmLock(core, { host: call.host, id }, async () => {
    const vm = earlyChecks(call, id);
    if (!call.flag('skiplock') && vm.config['lock'] !== 'suspended') checkLock(vm);
    if (isTemplate(vm)) checkBases(core, vm);
    requireWritable(core, vm);
    await context.work(SIMULATED_DURATIONS.destroy);
    await removeVolumes(core, vm, { volumes: ownedVolumes(core, vm), context });
    if (call.flag('destroy-unreferenced-disks')) {
      await removeVolumes(core, vm, { volumes: unreferenced(core, vm), context });
    }
    if (call.flag('purge')) {
      context.log(`purging VM ${id} from related configurations..`);
      core.world.ha.delete(`vm:${id}`);
    }
    forgetVm(core, vm);
  });
}

export function destroyVm(call: Call): string {
  const id = call.integer('vmid');
  if (call.flag('skiplock') && call.who !== ROOT) {
    throw parameterError({ skiplock: 'Only root may use this option.' });
  }
  earlyChecks(call, id);
  return call.fork({ type: 'qmdestroy', id }, (context) => destroyTask(call, id, context));
}
