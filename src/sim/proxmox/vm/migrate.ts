// SPDX-License-Identifier: Apache-2.0
// Migration of a VM to another host, over the API and for external changes.
import { ROOT_USER } from '../access/permissions.ts';
import { parameterError, serverError } from '../api-error.ts';
import { type Call, type Core, requireQuorum, startTask, withVmLock } from '../core.ts';
import type { Vm } from '../state/model.ts';
import { requireEnabledStorage, splitVolumeId, volumesOn } from '../storage/volumes.ts';
import { HA_POLL_INTERVAL_MS, SIMULATED_DURATIONS_MS } from '../tasks/durations.ts';
import type { TaskContext } from '../tasks/engine.ts';
import { checkLock, loadVm, memoryMib } from './config.ts';
import { isPlainCdrom, parseDrives } from './drives.ts';

function localVolumes(core: Core, vm: Vm): readonly string[] {
  return parseDrives(vm.config)
    .map(([, drive]) => drive.file)
    .filter((file) => {
      const storage = core.state.storages.get(splitVolumeId(file)?.storage ?? '');
      return storage !== undefined && !storage.shared;
    });
}

/** Moves the configuration and the disks on local storage to the target host. */
export function moveVmToHost(core: Core, vm: Vm, target: string): void {
  for (const file of localVolumes(core, vm)) {
    const id = splitVolumeId(file);
    const storage = core.state.storages.get(id?.storage ?? '');
    if (id === undefined || storage === undefined) continue;
    const volume = volumesOn(storage, vm.host).get(id.name);
    if (volume === undefined || volume.vmId !== vm.id) continue;
    volumesOn(storage, vm.host).delete(id.name);
    volumesOn(storage, target).set(id.name, volume);
  }
  vm.host = target;
  core.state.recordMove(vm);
}

function checkMigration(call: Call, vm: Vm): void {
  const target = call.text('target');
  const local = localVolumes(call.core, vm);
  const cdrom = parseDrives(vm.config).find(
    ([, drive]) => isPlainCdrom(drive) && local.includes(drive.file),
  );
  if (cdrom !== undefined) {
    throw serverError(
      `can't migrate local cdrom drive '${cdrom[0]}' - can't migrate VM to ${target}`,
    );
  }
  if (vm.running !== undefined && local.length > 0 && !call.flag('with-local-disks')) {
    throw serverError("can't live migrate attached local disks without with-local-disks option");
  }
}

async function migrateLocked(call: Call, context: TaskContext): Promise<void> {
  const vm = loadVm(call.core, call.host, call.integer('vmid'));
  checkLock(vm);
  checkMigration(call, vm);
  vm.config['lock'] = 'migrate';
  try {
    const gib = memoryMib(vm.config) / 1024;
    await context.work(
      vm.running === undefined
        ? SIMULATED_DURATIONS_MS.migrateOffline
        : SIMULATED_DURATIONS_MS.migrateOnlinePerGib * gib,
    );
    if (call.state.hosts.get(call.text('target'))?.online !== true) {
      throw serverError("Can't connect to destination address using public key");
    }
  } finally {
    delete vm.config['lock'];
  }
  moveVmToHost(call.core, vm, call.text('target'));
}

function refuseRootOptions(call: Call): void {
  if (call.authUser === ROOT_USER) return;
  for (const name of ['force', 'migration_type', 'migration_network']) {
    if (!['', '0'].includes(call.text(name))) {
      throw parameterError({ [name]: 'Only root may use this option.' });
    }
  }
}

/** Every storage of the VM must be available on the target. */
function checkStorages(call: Call, vm: Vm): void {
  if (call.optional('targetstorage') !== undefined) {
    throw serverError('migrating to other storages is not simulated');
  }
  for (const [, drive] of parseDrives(vm.config)) {
    const id = splitVolumeId(drive.file);
    if (id !== undefined) requireEnabledStorage(call.state, id.storage, call.text('target'));
  }
}

/** The HA manager migrates an HA-managed VM at its next poll. */
function requestMigration(call: Call, vm: Vm): string {
  const { core, host } = call;
  const target = call.text('target');
  return call.forkTask({ type: 'hamigrate', id: vm.id }, async (context) => {
    context.log(`Requesting HA migration for VM ${vm.id} to node ${target}`);
    const task = { type: 'qmigrate', id: vm.id, host, user: ROOT_USER };
    startTask(core, task, async (inner) => {
      await inner.work(HA_POLL_INTERVAL_MS);
      await withVmLock(core, { host, id: vm.id }, () => migrateLocked(call, inner));
    });
    await Promise.resolve();
  });
}

export function migrateVm(call: Call): string {
  const id = call.integer('vmid');
  const target = call.text('target');
  if (target === call.host) throw parameterError({ target: 'target is local node.' });
  requireQuorum(call.core);
  if (!call.state.hosts.has(target)) throw serverError(`no such cluster node '${target}'`);
  refuseRootOptions(call);
  const vm = loadVm(call.core, call.host, id);
  checkLock(vm);
  if (vm.running !== undefined && !call.flag('online')) {
    throw serverError("can't migrate running VM without --online");
  }
  checkStorages(call, vm);
  const managed = call.state.ha.get(`vm:${id}`);
  if (managed !== undefined && managed.state !== 'ignored') return requestMigration(call, vm);
  return call.forkTask({ type: 'qmigrate', id }, (context) =>
    withVmLock(call.core, { host: call.host, id }, () => migrateLocked(call, context)),
  );
}
