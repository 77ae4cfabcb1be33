// SPDX-License-Identifier: Apache-2.0
// PUT and POST config: checks and applies changes of a VM's configuration.
import { ROOT_USER } from '../access/permissions.ts';
import { errorText, parameterError, serverError } from '../api-error.ts';
import { type Call, withVmLock } from '../core.ts';
import { isDriveName, splitList } from '../schema/formats.ts';
import type { Vm } from '../state/model.ts';
import { freeVolume } from '../storage/allocation.ts';
import { findVolume, parseVolumeId, parseVolumeName, requireStorage } from '../storage/volumes.ts';
import { SIMULATED_DURATIONS_MS } from '../tasks/durations.ts';
import {
  checkDigest,
  checkLock,
  isKnownOption,
  loadVm,
  memoryMib,
  normaliseTags,
  requireWritable,
} from './config.ts';
import { normaliseDeviceOptions, readVmOptions } from './create.ts';
import { createDrives, requireDriveAccess, type WorkContext } from './create-drives.ts';
import {
  formatBootOrder,
  isCdrom,
  isCloudInit,
  isPlainCdrom,
  parseDrive,
  parseDrives,
} from './drives.ts';
import {
  requireBridgePrivileges,
  requireDevicePrivileges,
  requireOptionPrivileges,
  requireTagPrivileges,
} from './option-access.ts';
import { applyPending, hotplugPending } from './pending.ts';
import { checkSshKeys } from './ssh-keys.ts';

const NON_OPTION_PARAMS = [
  'node',
  'vmid',
  'delete',
  'revert',
  'force',
  'digest',
  'skiplock',
  'background_delay',
  'import-working-storage',
];

interface ConfigChange {
  readonly id: number;
  readonly set: Record<string, string>;
  readonly remove: string[];
  readonly revert: readonly string[];
}

function readRevertList(call: Call, set: Readonly<Record<string, string>>): string[] {
  return splitList(call.text('revert')).map((name) => {
    if (!isKnownOption(call.state, name))
      throw parameterError({ revert: `unknown option '${name}'` });
    if (set[name] !== undefined) {
      throw parameterError({
        delete: `you can't use '-${name}' and -revert ${name}' at the same time`,
      });
    }
    return name;
  });
}

function readDeleteList(
  call: Call,
  set: Readonly<Record<string, string>>,
  revert: readonly string[],
): string[] {
  return splitList(call.text('delete')).map((given) => {
    const name = given === 'cdrom' ? 'ide2' : given;
    if (set[name] !== undefined) {
      throw parameterError({
        delete: `you can't use '-${name}' and -delete ${name}' at the same time`,
      });
    }
    if (revert.includes(name)) {
      throw parameterError({
        revert: `you can't use '-delete ${name}' and -revert ${name}' at the same time`,
      });
    }
    if (!isKnownOption(call.state, name))
      throw parameterError({ delete: `unknown option '${name}'` });
    return name;
  });
}

/** The script must be a snippet volume; whether it is executable is not simulated. */
function checkHookScript(call: Call, volumeId: string | undefined): void {
  if (volumeId === undefined) return;
  try {
    const { storage: id, name } = parseVolumeId(volumeId);
    if (parseVolumeName(requireStorage(call.state, id), name).content !== 'snippets') {
      throw serverError(`'${volumeId}' is not in the snippets directory`);
    }
    if (findVolume(call.state, call.host, volumeId) === undefined) {
      throw serverError(`script '${volumeId}' does not exist`);
    }
  } catch (error) {
    throw parameterError({ hookscript: `${errorText(error)}\n` });
  }
}

function readChange(call: Call): ConfigChange {
  const id = call.integer('vmid');
  if (call.flag('skiplock') && call.authUser !== ROOT_USER) {
    throw parameterError({ skiplock: 'Only root may use this option.' });
  }
  const set = readVmOptions(call, NON_OPTION_PARAMS);
  checkSshKeys(set['sshkeys']);
  const names = Object.keys(set);
  if (names.length === 0 && call.text('delete') === '' && call.text('revert') === '') {
    throw serverError('no options specified');
  }
  const revert = readRevertList(call, set);
  const remove = readDeleteList(call, set, revert);
  normaliseDeviceOptions(call, set);
  if (set['vmgenid'] === '1') set['vmgenid'] = call.state.random.uuid();
  const user = { authUser: call.authUser, id };
  checkHookScript(call, set['hookscript']);
  requireOptionPrivileges(call.core, user, remove);
  requireOptionPrivileges(call.core, user, names);
  requireDriveAccess(call.core, {
    authUser: call.authUser,
    host: call.host,
    vmId: id,
    settings: set,
  });
  requireBridgePrivileges(call.core, call.authUser, set);
  return { id, set, remove, revert };
}

function requireDrivePrivileges(
  call: Call,
  vm: Vm,
  at: { readonly slot: string; readonly text: string },
): void {
  const drive = parseDrive(at.slot, at.text);
  const medium = isCdrom(drive) ? ['VM.Config.CDROM'] : ['VM.Config.Disk'];
  const privileges = isCloudInit(drive) ? ['VM.Config.Cloudinit', 'VM.Config.CDROM'] : medium;
  call.core.access.requireVm(call.authUser, vm, { privileges });
}

function checkMemory(vm: Vm, set: Readonly<Record<string, string>>): void {
  if (set['memory'] === undefined && set['balloon'] === undefined) return;
  const all = { ...vm.config, ...vm.pending, ...set };
  if (Number(all['balloon'] ?? 0) > memoryMib(all)) {
    throw serverError('balloon value too large (must be smaller than assigned memory)');
  }
}

function checkBoot(vm: Vm, change: ConfigChange): void {
  const all = { ...vm.config, ...vm.pending, ...change.set };
  const request = /^order=(.*)$/.exec(change.set['boot'] ?? '')?.[1]?.split(/[;,]/) ?? [];
  for (const device of request) {
    if (device === '') continue;
    if (all[device] === undefined || change.remove.includes(device)) {
      throw serverError(`invalid bootorder: device '${device}' does not exist'`);
    }
  }
}

async function removeUnused(
  call: Call,
  vm: Vm,
  at: { readonly name: string; readonly workContext: WorkContext },
): Promise<void> {
  call.core.access.requireVm(call.authUser, vm, { privileges: ['VM.Config.Disk'] });
  const volumeId = (vm.config[at.name] ?? '').split(',')[0] ?? '';
  if (vm.config['protection'] === '1') {
    throw serverError(`can't remove unused disk '${volumeId}' - protection mode enabled`);
  }
  await freeVolume(call.core, { host: vm.host, volumeId }, at.workContext.work);
  delete vm.config[at.name];
}

async function removeOption(
  call: Call,
  vm: Vm,
  at: { readonly name: string; readonly workContext: WorkContext },
): Promise<void> {
  const { name } = at;
  const value = vm.config[name] ?? vm.pending[name];
  if (value === undefined) {
    at.workContext.log(`cannot delete '${name}' - not set in current configuration!`);
    return;
  }
  if (/^unused\d+$/.test(name)) return removeUnused(call, vm, at);
  if (isDriveName(name)) {
    if (vm.config['protection'] === '1') {
      throw serverError(`can't remove drive '${name}' - protection mode enabled`);
    }
    requireDrivePrivileges(call, vm, { slot: name, text: value });
  } else if (name === 'tags') {
    requireTagPrivileges(
      call.core,
      { authUser: call.authUser, id: vm.id },
      { from: value, to: '' },
    );
  } else {
    requireRemovalPrivileges(call, vm, { name, value });
  }
  delete vm.pending[name];
  if (vm.config[name] !== undefined) vm.pendingDelete.add(name);
  removeFromBootOrder(vm, name);
}

/** Removing a device needs the same privileges as adding it. */
function requireRemovalPrivileges(
  call: Call,
  vm: Vm,
  option: { readonly name: string; readonly value: string },
): void {
  const { name, value } = option;
  if (/^net\d+$/.test(name)) return requireNicPrivileges(call, vm, name);
  if (/^serial\d+$/.test(name) && value !== 'socket') {
    if (call.authUser === ROOT_USER) return;
    throw serverError(`only root can delete '${name}' config for real devices`);
  }
  requireDevicePrivileges(call.core, { authUser: call.authUser, id: vm.id }, { [name]: value });
}

/** Removes a deleted device from the boot order. */
function removeFromBootOrder(vm: Vm, name: string): void {
  const boot = vm.pending['boot'] ?? vm.config['boot'];
  const request = /^order=(.*)$/.exec(boot ?? '')?.[1]?.split(';');
  if (request === undefined || !request.includes(name)) return;
  vm.pending['boot'] = formatBootOrder(request.filter((device) => device !== name));
}

interface OptionChange {
  readonly name: string;
  readonly value: string;
  readonly workContext: WorkContext;
  readonly change: ConfigChange;
}

/** Adds a new CD-ROM drive to the boot order. */
function appendToBootOrder(vm: Vm, name: string, value: string): void {
  const request = /^order=(.*)$/
    .exec(vm.pending['boot'] ?? vm.config['boot'] ?? '')?.[1]
    ?.split(';');
  if (request === undefined || request.includes(name) || !isPlainCdrom(parseDrive(name, value)))
    return;
  vm.pending['boot'] = formatBootOrder([...request.filter((device) => device !== ''), name]);
}

async function setDrive(call: Call, vm: Vm, at: OptionChange): Promise<void> {
  const { name, value, workContext } = at;
  const before = vm.config[name];
  if (before !== undefined) requireDrivePrivileges(call, vm, { slot: name, text: before });
  requireDrivePrivileges(call, vm, { slot: name, text: value });
  const request = {
    authUser: call.authUser,
    host: vm.host,
    vmId: vm.id,
    settings: { [name]: value },
  };
  const { [name]: _replaced, ...config } = { ...vm.config, ...vm.pending };
  const created = await createDrives(call.core, { ...request, config }, workContext);
  Object.assign(vm.pending, created.options);
  appendToBootOrder(vm, name, value);
}

function requireNicPrivileges(call: Call, vm: Vm, name: string): void {
  const before = vm.config[name];
  if (before !== undefined) requireBridgePrivileges(call.core, call.authUser, { [name]: before });
}

function requireSerialPrivileges(call: Call, vm: Vm, at: OptionChange): void {
  const before = vm.config[at.name] ?? 'socket';
  if (before !== 'socket' || at.value !== 'socket') {
    if (call.authUser === ROOT_USER) return;
    throw serverError(`only root can modify '${at.name}' config for real devices`);
  }
  call.core.access.requireVm(call.authUser, vm, { privileges: ['VM.Config.HWType'] });
}

function requireOptionChange(call: Call, vm: Vm, at: OptionChange): void {
  const { name, value } = at;
  if (/^net\d+$/.test(name)) requireNicPrivileges(call, vm, name);
  else if (/^serial\d+$/.test(name)) requireSerialPrivileges(call, vm, at);
  else if (name === 'boot') checkBoot(vm, at.change);
  else
    requireDevicePrivileges(call.core, { authUser: call.authUser, id: vm.id }, { [name]: value });
}

async function setOption(call: Call, vm: Vm, at: OptionChange): Promise<void> {
  const { name, value } = at;
  if (vm.pending[name] === value) return;
  if (isDriveName(name)) {
    await setDrive(call, vm, at);
  } else if (name === 'tags') {
    const change = { from: vm.config['tags'] ?? '', to: value };
    requireTagPrivileges(call.core, { authUser: call.authUser, id: vm.id }, change);
    vm.pending[name] = normaliseTags(call.state, value);
  } else {
    requireOptionChange(call, vm, at);
    vm.pending[name] = value;
  }
  vm.pendingDelete.delete(name);
}

async function applyChange(
  call: Call,
  vm: Vm,
  at: { readonly change: ConfigChange; readonly workContext: WorkContext },
): Promise<void> {
  const { change, workContext } = at;
  for (const name of change.remove) await removeOption(call, vm, { name, workContext });
  // Boot order last: it can refer to a device of the same call.
  const names = Object.keys(change.set).toSorted(
    (a, b) => Number(a === 'boot') - Number(b === 'boot'),
  );
  for (const name of names) {
    await setOption(call, vm, { name, value: change.set[name] ?? '', workContext, change });
  }
  for (const [name, value] of Object.entries(vm.pending)) {
    if (vm.config[name] === value) delete vm.pending[name];
  }
  const before = findCloudInitVolumes(vm);
  if (vm.running === undefined) applyPending(vm);
  else hotplugPending(vm);
  call.state.recordStatus(vm);
  const after = findCloudInitVolumes(vm);
  for (const volumeId of before.filter((file) => !after.includes(file))) {
    await freeVolume(call.core, { host: vm.host, volumeId }, workContext.work);
  }
}

/** Cloud-init volumes are deleted instead of kept as unused: Proxmox regenerates them at each start. */
function findCloudInitVolumes(vm: Vm): readonly string[] {
  return parseDrives(vm.config)
    .filter(([, drive]) => isCloudInit(drive))
    .map(([, drive]) => drive.file);
}

/** Runs before the first wait or fork, and again under the lock. */
function checkChange(call: Call, change: ConfigChange): Vm {
  const vm = loadVm(call.core, call.host, change.id);
  checkDigest(vm, call.optional('digest'));
  if (!call.flag('skiplock')) checkLock(vm);
  checkMemory(vm, change.set);
  return vm;
}

async function updateLocked(
  call: Call,
  change: ConfigChange,
  workContext: WorkContext,
): Promise<void> {
  await withVmLock(call.core, { host: call.host, id: change.id }, async () => {
    const vm = checkChange(call, change);
    requireWritable(call.core, vm);
    for (const name of change.revert) {
      delete vm.pending[name];
      vm.pendingDelete.delete(name);
    }
    await applyChange(call, vm, { change, workContext });
  });
}

/** PUT: synchronous. */
export async function updateVm(call: Call): Promise<null> {
  const change = readChange(call);
  checkChange(call, change);
  await updateLocked(call, change, {
    log: () => undefined,
    work: (ms) => call.state.clock.sleep(ms / call.state.speed),
  });
  return null;
}

/** The parameters of the call, for the task log. */
function formatGivenOptions(call: Call): string {
  const notRepeated = ['node', 'vmid', 'digest', 'background_delay', 'import-working-storage'];
  return Object.keys(call.params)
    .filter((name) => !notRepeated.includes(name))
    .toSorted()
    .map((name) => `-${name} ${name === 'cipassword' ? '<hidden>' : call.text(name)}`)
    .join(' ');
}

/** POST: starts a task, since creating disks takes time. */
export async function updateVmInTask(call: Call): Promise<string | null> {
  const change = readChange(call);
  checkChange(call, change);
  const upid = call.forkTask({ type: 'qmconfig', id: change.id }, async (context) => {
    context.log(`update VM ${change.id}: ${formatGivenOptions(call)}`);
    await context.work(SIMULATED_DURATIONS_MS.configTask);
    await updateLocked(call, change, context);
  });
  const delay = call.optional('background_delay');
  if (delay === undefined) return upid;
  const ended = await call.core.tasks.wait(upid, (Number(delay) * 1000) / call.state.speed);
  if (!ended) return upid;
  const status = call.core.tasks.find(upid)?.status ?? '';
  if (status === 'OK' || status.startsWith('WARNINGS')) return null;
  throw serverError(`failed to update VM ${change.id}: ${status}`);
}
