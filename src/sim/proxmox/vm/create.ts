// SPDX-License-Identifier: Apache-2.0
// POST /nodes/{node}/qemu: everything that is refused before the task, the id claimed, then the task.
import { failure, parameterError, permissionError, textOf } from '../api-error.ts';
import { type Call, requireQuorum, withVmLock } from '../core.ts';
import { isDriveName } from '../schema/formats.ts';
import { scalarText } from '../schema/verify.ts';
import { requireVolumeAccess } from '../storage/access.ts';
import { activeStorage, findVolume, kindOf, splitVolumeId, storageOf } from '../storage/volumes.ts';
import { freeAll } from '../storage/work.ts';
import { SIMULATED_DURATIONS, SIMULATED_TIMEOUTS } from '../tasks/durations.ts';
import type { TaskContext } from '../tasks/engine.ts';
import type { Vm } from '../world/model.ts';
import { clampCpuUnits, normaliseTags, withSmbiosUuid } from './config.ts';
import { makeDrives, requireDrives } from './disks.ts';
import {
  checkDriveForm,
  type Drive,
  defaultBootOrder,
  isCdrom,
  newDiskOf,
  parseNic,
  printDrive,
  printNic,
} from './drives.ts';
import { requireBridges, requireDevices, requireOptions, requireTags } from './option-access.ts';
import { startVm } from './power.ts';
import { checkSshKeys } from './ssh-keys.ts';

/** Parameters of the call that are no options of the VM. */
const NOT_OPTIONS = [
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

/** The options of a create or change call, `cdrom` being another word for ide2. */
export function optionsOf(call: Call, without: readonly string[]): Record<string, string> {
  const options: Record<string, string> = {};
  for (const [name, value] of Object.entries(call.params)) {
    if (!without.includes(name)) options[name] = scalarText(value);
  }
  const { cdrom, cpuunits } = options;
  if (cpuunits !== undefined) options['cpuunits'] = clampCpuUnits(cpuunits);
  if (cdrom !== undefined) {
    options['ide2'] = /media=/.test(cdrom) ? cdrom : `${cdrom},media=cdrom`;
    delete options['cdrom'];
  }
  return options;
}

/** An ISO that is no CD-ROM is refused by its kind, so its name must make sense to its storage. */
function requireForm(call: Call, slot: string, text: string): Drive {
  const drive = checkDriveForm(slot, text);
  const id = splitVolumeId(drive.file);
  if (id === undefined || newDiskOf(drive) !== undefined || id.name === 'cloudinit') return drive;
  const { content } = kindOf(storageOf(call.world, id.storage), id.name);
  if (content === 'iso' && !isCdrom(drive)) {
    throw parameterError({ [slot]: "explicit 'media=cdrom' is required for iso images" });
  }
  return drive;
}

/** Drives in their written form, network cards with a MAC. */
export function completeOptions(call: Call, options: Record<string, string>): void {
  for (const [name, value] of Object.entries(options)) {
    if (isDriveName(name)) options[name] = printDrive(requireForm(call, name, value));
    else if (/^net\d+$/.test(name)) options[name] = printNic(parseNic(value), call.world.newMac());
  }
}

/** The checks of a restore; the restore itself is not simulated. */
function refuseRestore(call: Call, options: Readonly<Record<string, string>>): never {
  const archive = call.text('archive');
  const drive = Object.keys(options).toSorted().find(isDriveName);
  if (drive !== undefined) {
    throw parameterError({ [drive]: "option conflicts with option 'archive'" });
  }
  if (archive === '-') throw failure('pipe requires cli environment');
  const vmId = call.integer('vmid');
  requireVolumeAccess(call.core, { who: call.who, vmId, volumeId: archive, content: 'backup' });
  const id = splitVolumeId(archive);
  if (id === undefined) throw failure(`can't find file '${archive}'`);
  activeStorage(call.world, id.storage, call.host);
  if (findVolume(call.world, call.host, archive) === undefined) {
    throw failure(`volume '${archive}' does not exist`);
  }
  throw failure('restoring from a backup is not simulated');
}

function requireAllocation(call: Call, id: number, pool: string | undefined): void {
  const privileges = ['VM.Allocate'];
  if (call.may({ path: `/vms/${id}`, privileges })) return;
  if (pool !== undefined && call.may({ path: `/pool/${pool}`, privileges })) return;
  throw permissionError();
}

function claim(call: Call, id: number): Vm {
  const { world } = call;
  const taken = world.guestHost(id);
  if (taken !== undefined) {
    const vm = world.vms.get(id);
    // Two hosts wrote the file at the same moment: each saw the id free, the cluster file system let one win.
    const sameMoment =
      vm !== undefined && vm.host !== call.host && vm.createdAt === world.clock.now();
    throw failure(
      sameMoment
        ? `unable to create VM ${id} - close (rename) atomic file '/etc/pve/nodes/${call.host}/qemu-server/${id}.conf' failed: File exists`
        : `unable to create VM ${id} - ${taken.type} ${id} already exists on node '${taken.host}'`,
    );
  }
  const vm = emptyVm(id, call.host, world.clock.now());
  vm.config = { lock: 'create' };
  world.vms.set(id, vm);
  return vm;
}

function withDefaults(call: Call, options: Record<string, string>): Record<string, string> {
  const { world } = call;
  const version = world.version === '8.4' ? '9.2.0' : '10.1.2';
  const smbios1 = options['smbios1'] ?? withSmbiosUuid(undefined, world.random.uuid());
  const vmgenid = options['vmgenid'] ?? '1';
  return {
    ...options,
    boot: options['boot'] ?? defaultBootOrder(options),
    smbios1,
    vmgenid: vmgenid === '1' ? world.random.uuid() : vmgenid,
    meta: `creation-qemu=${version},ctime=${world.seconds()}`,
  };
}

interface Creation {
  readonly vm: Vm;
  readonly options: Record<string, string>;
  readonly pool: string | undefined;
}

/** What is judged only when the disks are there. */
function finishOptions(call: Call, { vm, options }: Creation): void {
  const { tags } = options;
  if (tags !== undefined) {
    // Rights on the pool do not count here: the VM is not in it yet.
    requireTags(call.core, { who: call.who, id: vm.id }, { from: '', to: tags });
    options['tags'] = normaliseTags(call.world, tags);
  }
  if (call.world.vms.get(vm.id) === vm) return;
  throw failure(`Configuration file 'nodes/${call.host}/qemu-server/${vm.id}.conf' does not exist`);
}

async function create(call: Call, creation: Creation, context: TaskContext): Promise<void> {
  const { core, host, who } = call;
  const { vm, options, pool } = creation;
  const order = {
    who,
    host,
    vmId: vm.id,
    settings: options,
    defaultStorage: call.optional('storage'),
    config: {},
  };
  await context.work(SIMULATED_DURATIONS.createVm);
  const made = await makeDrives(core, order, context);
  try {
    finishOptions(call, creation);
  } catch (error) {
    await freeAll(core, { host, volumes: made.volumes }, context.log);
    throw error;
  }
  vm.config = withDefaults(call, { ...options, ...made.options });
  call.world.touch(vm);
  if (pool !== undefined) {
    call.world.pools.get(pool)?.vms.add(vm.id);
    call.world.accessVersion += 1;
  }
}

async function createTask(call: Call, creation: Creation, context: TaskContext): Promise<void> {
  const { core, host } = call;
  const { vm } = creation;
  try {
    const lock = { host, id: vm.id, timeoutMs: SIMULATED_TIMEOUTS.cloneLock };
    await withVmLock(core, lock, () => create(call, creation, context));
  } catch (error) {
    // A worker that was killed leaves its locked configuration behind; one that failed cleans up.
    if (!context.signal.aborted && call.world.vms.get(vm.id) === vm) call.world.vms.delete(vm.id);
    const text = textOf(error);
    throw failure(text.startsWith("can't lock") ? text : `unable to create VM ${vm.id} - ${text}`);
  }
  if (call.flag('ha-managed')) {
    context.log('Add as HA resource');
    const sid = `vm:${vm.id}`;
    const state = call.flag('start') ? 'started' : 'stopped';
    call.world.ha.set(sid, { sid, state, group: undefined, comment: undefined });
  }
  if (call.flag('start')) {
    context.log('Execute autostart');
    call.fork({ type: 'qmstart', id: vm.id }, (inner) => startVm(core, { host, id: vm.id }, inner));
  }
}

export async function createVm(call: Call): Promise<string> {
  const { core, host, who } = call;
  const id = call.integer('vmid');
  const pool = call.optional('pool');
  const options = optionsOf(call, NOT_OPTIONS);
  checkSshKeys(options['sshkeys']);
  requireQuorum(core);
  if (pool !== undefined) core.access.requirePool(pool);
  const storage = call.optional('storage');
  if (storage !== undefined) {
    call.require({ path: `/storage/${storage}`, privileges: ['Datastore.AllocateSpace'] });
  }
  const user = { who, id, pool };
  if (call.flag('ha-managed')) call.require({ path: '/', privileges: ['Sys.Console'] });
  if (call.flag('start') && call.world.version !== '8.4') {
    core.access.requireVm(who, user, { privileges: ['VM.PowerMgmt'] });
  }
  requireAllocation(call, id, pool);
  if (call.optional('archive') !== undefined) refuseRestore(call, options);
  requireDrives(core, { who, host, vmId: id, settings: options, defaultStorage: storage });
  requireOptions(core, user, Object.keys(options));
  requireDevices(core, user, options);
  requireBridges(core, who, options);
  completeOptions(call, options);
  const lock = { host, id, timeoutMs: SIMULATED_TIMEOUTS.createLock };
  const vm = await withVmLock(core, lock, () => Promise.resolve(claim(call, id)));
  const creation = { vm, options, pool };
  return call.fork({ type: 'qmcreate', id }, (context) => createTask(call, creation, context));
}
