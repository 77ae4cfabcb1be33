// SPDX-License-Identifier: Apache-2.0
// POST /nodes/{node}/qemu: checks before the task, claims the id, then starts the task.
import { errorText, parameterError, permissionError, serverError } from '../api-error.ts';
import { type Call, requireQuorum, withVmLock } from '../core.ts';
import { isDriveName } from '../schema/formats.ts';
import { formatScalar } from '../schema/verify.ts';
import type { Vm } from '../state/model.ts';
import { freeVolumes } from '../storage/allocation.ts';
import { requireVolumeAccess } from '../storage/volume-access.ts';
import {
  findVolume,
  findVolumeByPath,
  parseVolumeName,
  requireActiveStorage,
  requireStorage,
  splitVolumeId,
} from '../storage/volumes.ts';
import { SIMULATED_DURATIONS_MS, SIMULATED_TIMEOUTS_MS } from '../tasks/durations.ts';
import type { TaskContext } from '../tasks/engine.ts';
import { clampCpuUnits, normaliseTags, withSmbiosUuid } from './config.ts';
import { createDrives, requireDriveAccess } from './create-drives.ts';
import {
  type Drive,
  defaultBootOrder,
  formatDrive,
  formatNic,
  isCdrom,
  parseDriveOption,
  parseNewDisk,
  parseNic,
} from './drives.ts';
import {
  requireBridgePrivileges,
  requireDevicePrivileges,
  requireOptionPrivileges,
  requireTagPrivileges,
} from './option-access.ts';
import { startVm } from './power.ts';
import { checkSshKeys } from './ssh-keys.ts';

/** Parameters that are not VM options. */
const NON_OPTION_PARAMS = [
  'node',
  'vmid',
  'archive',
  'bwlimit',
  'force',
  'pool',
  'start',
  'storage',
  'unique',
  'live-restore',
  'import-working-storage',
  'ha-managed',
];

export function emptyVm(id: number, host: string, at: number): Vm {
  return {
    id,
    host,
    config: {},
    pending: {},
    pendingDelete: new Set(),
    snapshots: [],
    running: undefined,
    behaviour: undefined,
    broadcasts: [],
    createdAt: at,
  };
}

/** The VM options of a create or update call; `cdrom` is an alias of ide2. */
export function readVmOptions(call: Call, without: readonly string[]): Record<string, string> {
  const options: Record<string, string> = {};
  for (const [name, value] of Object.entries(call.params)) {
    if (!without.includes(name)) options[name] = formatScalar(value);
  }
  const { cdrom, cpuunits } = options;
  if (cpuunits !== undefined) options['cpuunits'] = clampCpuUnits(cpuunits);
  if (cdrom !== undefined) {
    options['ide2'] = /media=/.test(cdrom) ? cdrom : `${cdrom},media=cdrom`;
    delete options['cdrom'];
  }
  return options;
}

/** A path becomes the id of its volume; devices stay as they are. */
function resolvePath(call: Call, slot: string, drive: Drive): Drive {
  const { file } = drive;
  if (!file.startsWith('/') || file.startsWith('/dev/') || file.includes(':')) return drive;
  const volumeId = findVolumeByPath(call.state, call.host, file);
  if (volumeId !== undefined) return { ...drive, file: volumeId };
  throw parameterError({ [slot]: `unable to associate path '${file}' to any storage` });
}

/** Refuses an ISO without `media=cdrom`, and volume names that the storage cannot parse. */
function checkDriveOption(call: Call, slot: string, text: string): Drive {
  const drive = resolvePath(call, slot, parseDriveOption(slot, text));
  const { file, options } = drive;
  if ((file === 'none' || file === 'cdrom') && options['media'] === undefined)
    return { file, options: { ...options, media: 'cdrom' } };
  const id = splitVolumeId(file);
  if (id === undefined || parseNewDisk(drive) !== undefined || id.name === 'cloudinit')
    return drive;
  const { content } = parseVolumeName(requireStorage(call.state, id.storage), id.name);
  if (content === 'iso' && !isCdrom(drive)) {
    throw parameterError({ [slot]: "explicit 'media=cdrom' is required for iso images" });
  }
  return drive;
}

/** Rewrites drives in Proxmox' canonical form and gives network cards a MAC address. */
export function normaliseDeviceOptions(call: Call, options: Record<string, string>): void {
  for (const [name, value] of Object.entries(options)) {
    if (isDriveName(name)) options[name] = formatDrive(checkDriveOption(call, name, value));
    else if (/^net\d+$/.test(name))
      options[name] = formatNic(parseNic(value), call.state.generateMac());
  }
}

/** Runs the checks of a restore, then throws: restores are not simulated. */
function refuseRestore(call: Call, options: Readonly<Record<string, string>>): never {
  const archive = call.text('archive');
  const drive = Object.keys(options).toSorted().find(isDriveName);
  if (drive !== undefined) {
    throw parameterError({ [drive]: "option conflicts with option 'archive'" });
  }
  if (archive === '-') throw serverError('pipe requires cli environment');
  const vmId = call.integer('vmid');
  requireVolumeAccess(call.core, {
    authUser: call.authUser,
    vmId,
    volumeId: archive,
    content: 'backup',
  });
  const id = splitVolumeId(archive);
  if (id === undefined) throw serverError(`can't find file '${archive}'`);
  requireActiveStorage(call.state, id.storage, call.host);
  if (findVolume(call.state, call.host, archive) === undefined) {
    throw serverError(`volume '${archive}' does not exist`);
  }
  throw serverError('restoring from a backup is not simulated');
}

function requireAllocation(call: Call, id: number, pool: string | undefined): void {
  const privileges = ['VM.Allocate'];
  if (call.isAllowed({ path: `/vms/${id}`, privileges })) return;
  if (pool !== undefined && call.isAllowed({ path: `/pool/${pool}`, privileges })) return;
  throw permissionError();
}

function claimVmId(call: Call, id: number): Vm {
  const { state } = call;
  const taken = state.findGuest(id);
  if (taken !== undefined) {
    const vm = state.vms.get(id);
    // Two hosts claim the id at the same time: both find it free, the cluster file system accepts one file.
    const sameMoment =
      vm !== undefined && vm.host !== call.host && vm.createdAt === state.clock.now();
    throw serverError(
      sameMoment
        ? `unable to create VM ${id} - close (rename) atomic file '/etc/pve/nodes/${call.host}/qemu-server/${id}.conf' failed: File exists`
        : `unable to create VM ${id} - ${taken.type} ${id} already exists on node '${taken.host}'`,
    );
  }
  const vm = emptyVm(id, call.host, state.clock.now());
  vm.config = { lock: 'create' };
  state.vms.set(id, vm);
  return vm;
}

function withDefaults(call: Call, options: Record<string, string>): Record<string, string> {
  const { state } = call;
  const version = state.version === '8.4' ? '9.2.0' : '10.1.2';
  const smbios1 = options['smbios1'] ?? withSmbiosUuid(undefined, state.random.uuid());
  const vmgenid = options['vmgenid'] ?? '1';
  return {
    ...options,
    boot: options['boot'] ?? defaultBootOrder(options),
    smbios1,
    vmgenid: vmgenid === '1' ? state.random.uuid() : vmgenid,
    meta: `creation-qemu=${version},ctime=${state.nowSeconds()}`,
  };
}

interface Creation {
  readonly vm: Vm;
  readonly options: Record<string, string>;
  readonly pool: string | undefined;
}

/** Checks that Proxmox runs only after it created the disks. */
function finishOptions(call: Call, { vm, options }: Creation): void {
  const { tags } = options;
  if (tags !== undefined) {
    // Privileges on the pool do not count: the VM is not a member yet.
    requireTagPrivileges(call.core, { authUser: call.authUser, id: vm.id }, { from: '', to: tags });
    options['tags'] = normaliseTags(call.state, tags);
  }
  if (call.state.vms.get(vm.id) === vm) return;
  throw serverError(
    `Configuration file 'nodes/${call.host}/qemu-server/${vm.id}.conf' does not exist`,
  );
}

async function createLocked(call: Call, creation: Creation, context: TaskContext): Promise<void> {
  const { core, host, authUser } = call;
  const { vm, options, pool } = creation;
  const request = {
    authUser,
    host,
    vmId: vm.id,
    settings: options,
    defaultStorage: call.optional('storage'),
    config: {},
  };
  await context.work(SIMULATED_DURATIONS_MS.createVm);
  const created = await createDrives(core, request, context);
  try {
    finishOptions(call, creation);
  } catch (error) {
    await freeVolumes(core, { host, volumes: created.volumes }, context.log);
    throw error;
  }
  vm.config = withDefaults(call, { ...options, ...created.options });
  call.state.recordStatus(vm);
  if (pool !== undefined) {
    call.state.pools.get(pool)?.vms.add(vm.id);
    call.state.accessVersion += 1;
  }
}

async function createTask(call: Call, creation: Creation, context: TaskContext): Promise<void> {
  const { core, host } = call;
  const { vm } = creation;
  try {
    const lock = { host, id: vm.id, timeoutMs: SIMULATED_TIMEOUTS_MS.cloneLock };
    await withVmLock(core, lock, () => createLocked(call, creation, context));
  } catch (error) {
    // A killed worker leaves its locked configuration; a failed one cleans up.
    if (!context.isKilled() && call.state.vms.get(vm.id) === vm) call.state.vms.delete(vm.id);
    const text = errorText(error);
    throw serverError(
      text.startsWith("can't lock") ? text : `unable to create VM ${vm.id} - ${text}`,
    );
  }
  if (call.flag('ha-managed')) {
    context.log('Add as HA resource');
    const sid = `vm:${vm.id}`;
    const state = call.flag('start') ? 'started' : 'stopped';
    call.state.ha.set(sid, { sid, state, group: undefined, comment: undefined });
  }
  if (call.flag('start')) {
    context.log('Execute autostart');
    call.forkTask({ type: 'qmstart', id: vm.id }, (inner) =>
      startVm(core, { host, id: vm.id }, inner),
    );
  }
}

export async function createVm(call: Call): Promise<string> {
  const { core, host, authUser } = call;
  const id = call.integer('vmid');
  const pool = call.optional('pool');
  const options = readVmOptions(call, NON_OPTION_PARAMS);
  checkSshKeys(options['sshkeys']);
  requireQuorum(core);
  if (pool !== undefined) core.access.requirePool(pool);
  const storage = call.optional('storage');
  if (storage !== undefined) {
    call.require({ path: `/storage/${storage}`, privileges: ['Datastore.AllocateSpace'] });
  }
  const user = { authUser, id, pool };
  if (call.flag('ha-managed')) call.require({ path: '/', privileges: ['Sys.Console'] });
  if (call.flag('start') && call.state.version !== '8.4') {
    core.access.requireVm(authUser, user, { privileges: ['VM.PowerMgmt'] });
  }
  requireAllocation(call, id, pool);
  if (call.optional('archive') !== undefined) refuseRestore(call, options);
  requireDriveAccess(core, {
    authUser,
    host,
    vmId: id,
    settings: options,
    defaultStorage: storage,
  });
  requireOptionPrivileges(core, user, Object.keys(options));
  requireDevicePrivileges(core, user, options);
  requireBridgePrivileges(core, authUser, options);
  normaliseDeviceOptions(call, options);
  const lock = { host, id, timeoutMs: SIMULATED_TIMEOUTS_MS.createLock };
  const vm = await withVmLock(core, lock, () => Promise.resolve(claimVmId(call, id)));
  const creation = { vm, options, pool };
  return call.forkTask({ type: 'qmcreate', id }, (context) => createTask(call, creation, context));
}
