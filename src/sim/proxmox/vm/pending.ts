// SPDX-License-Identifier: Apache-2.0
// Pending changes: which ones a running VM applies at once, which ones wait until it is off.
import { isDriveName, splitList } from '../schema/formats.ts';
import type { Vm } from '../state/model.ts';
import { isCdrom, isCloudInit, parseDrive } from './drives.ts';

const APPLIED_WITHOUT_RESTART = new Set([
  'lock',
  'name',
  'onboot',
  'shares',
  'startup',
  'description',
  'protection',
  'vmstatestorage',
  'hookscript',
  'tags',
  'ciuser',
  'cipassword',
  'citype',
  'ciupgrade',
  'cicustom',
  'nameserver',
  'searchdomain',
  'sshkeys',
]);

function hotplugFeatures(vm: Vm): readonly string[] {
  const text = vm.config['hotplug'] ?? 'network,disk,usb';
  if (text === '0') return [];
  return text === '1' ? ['network', 'disk', 'usb'] : splitList(text);
}

/** Keeps a detached disk as `unusedN`. */
export function keepDriveAsUnused(vm: Vm, slot: string): void {
  const text = vm.config[slot];
  if (text === undefined) return;
  const drive = parseDrive(slot, text);
  if (isCdrom(drive) || isCloudInit(drive) || !drive.file.includes(':')) return;
  let index = 0;
  while (vm.config[`unused${index}`] !== undefined) index += 1;
  vm.config[`unused${index}`] = drive.file;
}

function setNow(vm: Vm, name: string, value: string): void {
  if (isDriveName(name) && vm.config[name] !== undefined) {
    const before = parseDrive(name, vm.config[name] ?? '').file;
    if (before !== parseDrive(name, value).file) keepDriveAsUnused(vm, name);
  }
  vm.config[name] = value;
}

function deleteNow(vm: Vm, name: string): void {
  if (isDriveName(name)) keepDriveAsUnused(vm, name);
  delete vm.config[name];
}

function canHotplug(vm: Vm, name: string, value: string): boolean {
  if (APPLIED_WITHOUT_RESTART.has(name) || /^ipconfig\d+$/.test(name)) return true;
  if (/^net\d+$/.test(name)) return hotplugFeatures(vm).includes('network');
  if (/^unused\d+$/.test(name)) return true;
  if (!isDriveName(name)) return false;
  const known = vm.config[name];
  const isMedium =
    known !== undefined && isCdrom(parseDrive(name, known)) && isCdrom(parseDrive(name, value));
  if (isMedium) return true;
  return /^(?:scsi|virtio)\d+$/.test(name) && hotplugFeatures(vm).includes('disk');
}

function canHotUnplug(vm: Vm, name: string): boolean {
  if (APPLIED_WITHOUT_RESTART.has(name) || /^ipconfig\d+$/.test(name) || /^unused\d+$/.test(name))
    return true;
  if (/^net\d+$/.test(name)) return hotplugFeatures(vm).includes('network');
  return /^(?:scsi|virtio)\d+$/.test(name) && hotplugFeatures(vm).includes('disk');
}

/** Applies all pending changes. Call it only while the VM is off. */
export function applyPending(vm: Vm): void {
  for (const name of vm.pendingDelete) deleteNow(vm, name);
  for (const [name, value] of Object.entries(vm.pending)) setNow(vm, name, value);
  vm.pendingDelete = new Set();
  vm.pending = {};
}

/** Applies the pending changes that a running VM supports; the others stay pending. */
export function hotplugPending(vm: Vm): void {
  for (const name of vm.pendingDelete) {
    if (!canHotUnplug(vm, name)) continue;
    deleteNow(vm, name);
    vm.pendingDelete.delete(name);
  }
  for (const [name, value] of Object.entries(vm.pending)) {
    if (vm.config[name] !== value && !canHotplug(vm, name, value)) continue;
    setNow(vm, name, value);
    delete vm.pending[name];
  }
}
