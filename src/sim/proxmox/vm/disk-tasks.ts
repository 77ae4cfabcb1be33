// SPDX-License-Identifier: Apache-2.0
// Tasks on existing disks: resize, conversion to a template, move to another storage.
import { parameterError, serverError } from '../api-error.ts';
import { type Call, type Core, withVmLock } from '../core.ts';
import { formatSize, parseSize } from '../state/cluster-state.ts';
import type { Vm, Volume } from '../state/model.ts';
import { allocateVolume, freeVolume } from '../storage/allocation.ts';
import {
  findVolume,
  parseVolumeId,
  parseVolumeName,
  requireActiveStorage,
  requireEnabledStorage,
  requireStorage,
  splitVolumeId,
  volumesOn,
} from '../storage/volumes.ts';
import { SIMULATED_DURATIONS_MS } from '../tasks/durations.ts';
import type { TaskContext } from '../tasks/engine.ts';
import {
  checkDigest,
  checkLock,
  configDigest,
  isTemplate,
  loadVm,
  requireWritable,
} from './config.ts';
import {
  type Drive,
  formatDrive,
  isCdrom,
  isCloudInit,
  isPlainCdrom,
  parseDrive,
  parseDrives,
} from './drives.ts';

function parseTargetSize(text: string, now: number): number {
  const bytes = parseSize(text.replace(/^\+/, '')) ?? 0;
  const size = text.startsWith('+') ? now + bytes : bytes;
  return Math.ceil(size / 1024) * 1024;
}

/** The volume of a drive; throws unless it can be resized. */
function requireResizableVolume(call: Call, vm: Vm, slot: string): Volume {
  const { state } = call;
  const text = vm.config[slot];
  if (text === undefined) throw serverError(`disk '${slot}' does not exist`);
  const drive = parseDrive(slot, text);
  const { storage: id, name } = parseVolumeId(drive.file);
  const { format } = parseVolumeName(requireStorage(state, id), name);
  if (state.version === '8.4' && vm.snapshots.length > 0 && format === 'qcow2') {
    throw serverError(`can't resize volume: ${slot} if snapshot exists`);
  }
  if (isCdrom(drive)) throw serverError("you can't resize a cdrom");
  call.require({ path: `/storage/${id}`, privileges: ['Datastore.AllocateSpace'] });
  requireActiveStorage(state, id, vm.host);
  const volume = findVolume(state, vm.host, drive.file);
  if (volume === undefined) throw serverError(`volume '${drive.file}' does not exist`);
  return volume;
}

async function resizeLocked(call: Call, context: TaskContext): Promise<void> {
  const { core } = call;
  const vm = loadVm(core, call.host, call.integer('vmid'));
  checkDigest(vm, call.optional('digest'));
  if (!call.flag('skiplock')) checkLock(vm);
  const slot = call.text('disk');
  const volume = requireResizableVolume(call, vm, slot);
  const drive = parseDrive(slot, vm.config[slot] ?? '');
  const size = parseTargetSize(call.text('size'), volume.size);
  if (size < volume.size) throw serverError('shrinking disks is not supported');
  if (size === volume.size) return;
  if (volume.format === 'vmdk') throw serverError("can't resize this image format");
  requireWritable(core, vm);
  await context.work(SIMULATED_DURATIONS_MS.resize);
  volume.size = size;
  vm.config[slot] = formatDrive({
    ...drive,
    options: { ...drive.options, size: formatSize(size) },
  });
  core.state.recordStatus(vm);
}

export function resizeDisk(call: Call): string {
  const id = call.integer('vmid');
  if (call.flag('skiplock') && call.authUser !== 'root@pam') {
    throw parameterError({ skiplock: 'Only root may use this option.' });
  }
  return call.forkTask({ type: 'resize', id }, (context) =>
    withVmLock(call.core, { host: call.host, id }, () => resizeLocked(call, context)),
  );
}

/** Renames `vm-…` to `base-…`, so that linked clones can use the volume. */
function convertToBaseVolume(core: Core, vm: Vm, slot: string): void {
  const drive = parseDrive(slot, vm.config[slot] ?? '');
  const id = splitVolumeId(drive.file);
  if (id === undefined) return;
  const volumes = volumesOn(requireStorage(core.state, id.storage), vm.host);
  const volume: Volume | undefined = volumes.get(id.name);
  if (volume === undefined) return;
  const parts = id.name.split('/');
  const last = (parts.pop() ?? '').replace(/^vm-/, 'base-');
  const name = [...parts, last].join('/');
  volumes.delete(id.name);
  volumes.set(name, { ...volume, name });
  vm.config[slot] = formatDrive({ ...drive, file: `${id.storage}:${name}` });
}

export function convertToTemplate(core: Core, vm: Vm, only?: string): void {
  for (const [slot, drive] of parseDrives(vm.config)) {
    if (isCdrom(drive) || isCloudInit(drive)) continue;
    if (only === undefined || only === slot) convertToBaseVolume(core, vm, slot);
  }
  vm.config['template'] = '1';
}

function checkTemplate(call: Call): Vm {
  const vm = loadVm(call.core, call.host, call.integer('vmid'));
  checkLock(vm);
  if (vm.snapshots.length > 0) {
    throw serverError(`unable to create template, because VM contains snapshots`);
  }
  const disk = call.optional('disk');
  if (isTemplate(vm) && disk === undefined) {
    throw serverError(`you can't convert a template to a template`);
  }
  if (vm.running !== undefined)
    throw serverError(`you can't convert a VM to template if VM is running`);
  return vm;
}

export async function createTemplate(call: Call): Promise<string> {
  const id = call.integer('vmid');
  const lock = { host: call.host, id };
  return await withVmLock(call.core, lock, async () => {
    checkTemplate(call);
    await Promise.resolve();
    return call.forkTask({ type: 'qmtemplate', id }, (context) =>
      withVmLock(call.core, lock, async () => {
        const vm = checkTemplate(call);
        requireWritable(call.core, vm);
        await context.work(SIMULATED_DURATIONS_MS.template);
        convertToTemplate(call.core, vm, call.optional('disk'));
        call.state.recordStatus(vm);
      }),
    );
  });
}

function requireUnmodified(vm: Vm, digest: string): void {
  if (digest === '' || digest === configDigest(vm)) return;
  throw serverError('detected modified configuration - file changed by other user? Try again.');
}

/** The drive to move; throws unless it can be moved. */
function requireMovableDrive(call: Call, vm: Vm): Drive {
  const slot = call.text('disk');
  const storage = call.text('storage');
  checkLock(vm);
  requireUnmodified(vm, call.text('digest'));
  const text = vm.config[slot];
  if (text === undefined) throw serverError(`disk '${slot}' does not exist`);
  const drive = parseDrive(slot, text);
  if (isPlainCdrom(drive)) throw serverError("you can't move a cdrom");
  const { storage: from, name } = parseVolumeId(drive.file);
  const format = call.optional('format');
  const known = parseVolumeName(requireStorage(call.state, from), name).format;
  if (from === storage && (format === undefined || known === format)) {
    throw serverError("you can't move to the same storage with same format");
  }
  if (!requireEnabledStorage(call.state, storage, call.host).content.includes('images')) {
    throw parameterError({ storage: `storage '${storage}' does not support vm images` });
  }
  if (call.flag('delete') && vm.snapshots.some(({ config }) => config[slot] === text)) {
    throw serverError("you can't move a disk with snapshots and delete the source");
  }
  return drive;
}

async function moveLocked(call: Call, context: TaskContext): Promise<void> {
  const { core } = call;
  const vm = loadVm(core, call.host, call.integer('vmid'));
  const slot = call.text('disk');
  const drive = requireMovableDrive(call, vm);
  const volume = findVolume(core.state, vm.host, drive.file);
  if (volume === undefined) throw serverError(`volume '${drive.file}' does not exist`);
  requireWritable(core, vm);
  const fresh = {
    vmId: vm.id,
    size: volume.size,
    format: call.optional('format') ?? volume.format,
    image: volume.image,
    guestState: volume.guestState,
    everBooted: volume.everBooted,
  };
  const location = { storage: call.text('storage'), host: vm.host };
  const file = await allocateVolume(core, location, { volume: fresh, work: context.work });
  await context.work((SIMULATED_DURATIONS_MS.fullClonePerGib * volume.size) / 2 ** 30);
  vm.config[slot] = formatDrive({ ...drive, file });
  if (call.flag('delete')) {
    await freeVolume(core, { host: vm.host, volumeId: drive.file }, context.work);
    return;
  }
  let index = 0;
  while (vm.config[`unused${index}`] !== undefined) index += 1;
  vm.config[`unused${index}`] = drive.file;
}

/** The target is a storage or another VM, not both. */
function requireOneTarget(call: Call): void {
  const storage = call.optional('storage') !== undefined;
  const other = call.optional('target-vmid') !== undefined;
  if (storage !== other) return;
  const text = storage
    ? "either set 'storage' or 'target-vmid', but not both"
    : "both 'storage' and 'target-vmid' missing, either needs to be set";
  throw parameterError({ 'target-vmid': text, storage: text });
}

export function moveDisk(call: Call): string {
  const id = call.integer('vmid');
  requireOneTarget(call);
  const storage = call.optional('storage');
  if (storage === undefined) throw serverError('moving a disk to another VM is not simulated');
  call.require({ path: `/storage/${storage}`, privileges: ['Datastore.AllocateSpace'] });
  requireMovableDrive(call, loadVm(call.core, call.host, id));
  return call.forkTask({ type: 'qmmove', id }, (context) =>
    withVmLock(call.core, { host: call.host, id }, () => moveLocked(call, context)),
  );
}
