// SPDX-License-Identifier: Apache-2.0
// Snapshots: list, create, delete, roll back. They keep configurations, not disk contents.
import { serverError } from '../api-error.ts';
import { type Call, withVmLock } from '../core.ts';
import type { Snapshot, Vm } from '../state/model.ts';
import { splitVolumeId } from '../storage/volumes.ts';
import { SIMULATED_DURATIONS_MS } from '../tasks/durations.ts';
import { checkLock, configDigest, isTemplate, loadVm, requireWritable } from './config.ts';
import { isCdrom, parseDrives } from './drives.ts';
import { powerOff } from './guest-lifecycle.ts';
import { startVm } from './power.ts';

export function listSnapshots(call: Call): unknown {
  const vm = loadVm(call.core, call.host, call.integer('vmid'));
  const rows = vm.snapshots.map((snapshot) => ({
    name: snapshot.name,
    description: snapshot.description ?? '',
    snaptime: snapshot.takenAt,
    vmstate: 0,
    ...(snapshot.parent === undefined ? {} : { parent: snapshot.parent }),
  }));
  const parent = vm.snapshots.at(-1)?.name;
  return [
    ...rows,
    {
      name: 'current',
      description: 'You are here!',
      digest: configDigest(vm),
      running: vm.running === undefined ? 0 : 1,
      ...(parent === undefined ? {} : { parent }),
    },
  ];
}

function requireSnapshot(vm: Vm, name: string): Snapshot {
  const snapshot = vm.snapshots.find((known) => known.name === name);
  if (snapshot === undefined) throw serverError(`snapshot '${name}' does not exist`);
  return snapshot;
}

/** LVM and raw files do not support snapshots. */
export function canSnapshot(call: Call, vm: Vm): boolean {
  return parseDrives(vm.config).every(([, drive]) => {
    if (isCdrom(drive)) return true;
    const id = splitVolumeId(drive.file);
    const storage = call.state.storages.get(id?.storage ?? '');
    if (id === undefined || storage === undefined || storage.type === 'lvm') return false;
    return storage.path === undefined || storage.type === 'btrfs' || id.name.endsWith('.qcow2');
  });
}

export function takeSnapshot(call: Call): string {
  const id = call.integer('vmid');
  const name = call.text('snapname');
  if (name === 'current')
    throw serverError("unable to use snapshot name 'current' (reserved name)");
  if (name.toLowerCase() === 'pending')
    throw serverError("unable to use snapshot name 'pending' (reserved name)");
  loadVm(call.core, call.host, id);
  return call.forkTask({ type: 'qmsnapshot', id }, (context) =>
    withVmLock(call.core, { host: call.host, id }, async () => {
      const vm = loadVm(call.core, call.host, id);
      if (isTemplate(vm)) throw serverError("you can't take a snapshot if it's a template");
      checkLock(vm);
      if (vm.snapshots.some((known) => known.name === name)) {
        throw serverError(`snapshot name '${name}' already used`);
      }
      if (!canSnapshot(call, vm)) throw serverError('snapshot feature is not available');
      requireWritable(call.core, vm);
      vm.config['lock'] = 'snapshot';
      await context.work(SIMULATED_DURATIONS_MS.snapshot);
      delete vm.config['lock'];
      vm.snapshots.push({
        name,
        description: call.optional('description'),
        takenAt: call.state.nowSeconds(),
        parent: vm.snapshots.at(-1)?.name,
        config: { ...vm.config },
      });
    }),
  );
}

export function deleteSnapshot(call: Call): string {
  const id = call.integer('vmid');
  return call.forkTask({ type: 'qmdelsnapshot', id }, (context) =>
    withVmLock(call.core, { host: call.host, id }, async () => {
      const vm = loadVm(call.core, call.host, id);
      if (isTemplate(vm)) throw serverError("you can't delete a snapshot if vm is a template");
      checkLock(vm);
      const snapshot = requireSnapshot(vm, call.text('snapname'));
      requireWritable(call.core, vm);
      await context.work(SIMULATED_DURATIONS_MS.snapshot);
      vm.snapshots = vm.snapshots.filter((known) => known !== snapshot);
    }),
  );
}

/** Leaves the VM off unless `start` is set. */
export function rollbackSnapshot(call: Call): string {
  const id = call.integer('vmid');
  const { core, host } = call;
  if (call.flag('start') && call.state.version !== '8.4') {
    call.require({ path: `/vms/${id}`, privileges: ['VM.PowerMgmt'] });
  }
  return call.forkTask({ type: 'qmrollback', id }, async (context) => {
    await withVmLock(core, { host, id }, async () => {
      const vm = loadVm(core, host, id);
      if (isTemplate(vm)) throw serverError("you can't rollback if vm is a template");
      const snapshot = requireSnapshot(vm, call.text('snapname'));
      checkLock(vm);
      requireWritable(core, vm);
      await context.work(SIMULATED_DURATIONS_MS.snapshot);
      powerOff(core, vm, () => undefined);
      vm.pending = {};
      vm.pendingDelete = new Set();
      vm.config = { ...snapshot.config };
      call.state.recordStatus(vm);
    });
    if (!call.flag('start')) return;
    call.forkTask({ type: 'qmstart', id }, (inner) => startVm(core, { host, id }, inner));
  });
}

/** Changes the description; nothing else can change. */
export async function updateSnapshot(call: Call): Promise<null> {
  const id = call.integer('vmid');
  const description = call.optional('description');
  if (description === undefined) return null;
  await withVmLock(call.core, { host: call.host, id }, async () => {
    const vm = loadVm(call.core, call.host, id);
    checkLock(vm);
    const snapshot = requireSnapshot(vm, call.text('snapname'));
    vm.snapshots = vm.snapshots.map((known) =>
      known === snapshot ? { ...known, description } : known,
    );
    await Promise.resolve();
  });
  return null;
}

export function snapshotConfig(call: Call): unknown {
  const vm = loadVm(call.core, call.host, call.integer('vmid'));
  const snapshot = requireSnapshot(vm, call.text('snapname'));
  return { ...snapshot.config, snaptime: snapshot.takenAt };
}
