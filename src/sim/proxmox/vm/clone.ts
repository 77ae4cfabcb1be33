// SPDX-License-Identifier: Apache-2.0
// POST clone: runs the same checks before and inside the task; the new id is claimed only inside the task.
import { errorText, parameterError, serverError } from '../api-error.ts';
import { type Call, requireQuorum, withVmLock } from '../core.ts';
import { formatSize } from '../state/cluster-state.ts';
import type { Vm } from '../state/model.ts';
import { allocateVolume, copyData, freeVolumes } from '../storage/allocation.ts';
import {
  findVolume,
  parseVolumeId,
  requireEnabledStorage,
  requireStorage,
} from '../storage/volumes.ts';
import { SIMULATED_DURATIONS_MS, SIMULATED_TIMEOUTS_MS } from '../tasks/durations.ts';
import type { TaskContext } from '../tasks/engine.ts';
import { checkLock, findVm, isTemplate, withSmbiosUuid } from './config.ts';
import { emptyVm } from './create.ts';
import {
  type Drive,
  formatDrive,
  formatNic,
  isCloudInit,
  isPlainCdrom,
  parseDrives,
  parseNic,
  type VmOptions,
} from './drives.ts';
import { requireBridgePrivileges } from './option-access.ts';

interface ClonePlan {
  readonly source: Vm;
  readonly config: VmOptions;
  readonly newId: number;
  readonly full: boolean;
  readonly target: string | undefined;
}

function checkCloneTarget(call: Call, target: string | undefined): void {
  if (target !== undefined && !call.state.hosts.has(target)) {
    throw serverError(`no such cluster node '${target}'`);
  }
  const storage = call.optional('storage');
  if (storage === undefined) return;
  const config = requireEnabledStorage(call.state, storage, call.host);
  if (!config.content.includes('images')) {
    throw parameterError({ storage: `storage '${storage}' does not support vm images` });
  }
  if (target === undefined) return;
  requireEnabledStorage(call.state, storage, target);
  if (!config.shared) throw serverError(`can't clone to non-shared storage '${storage}'`);
}

/** Checks the privileges on all storages; returns whether all of them are shared. */
function requireStorageAccess(call: Call, config: VmOptions): boolean {
  let shared = true;
  for (const [, drive] of parseDrives(config)) {
    if (drive.file === 'none') continue;
    if (drive.file === 'cdrom') {
      call.require({ path: '/', privileges: ['Sys.Console'] });
      continue;
    }
    const { storage } = parseVolumeId(drive.file);
    if (!requireStorage(call.state, storage).shared) shared = false;
    if (isPlainCdrom(drive)) continue;
    const location = call.optional('storage') ?? storage;
    call.require({ path: `/storage/${location}`, privileges: ['Datastore.AllocateSpace'] });
  }
  return shared;
}

function findSourceConfig(call: Call, source: Vm): VmOptions {
  const name = call.optional('snapname');
  if (name === undefined) return source.config;
  const snapshot = source.snapshots.find((known) => known.name === name);
  if (snapshot === undefined) throw serverError(`snapshot '${name}' does not exist`);
  return snapshot.config;
}

/** Linked clones need base volumes, which only templates have. */
function isBaseVolume(call: Call, file: string): boolean {
  const { storage, name } = parseVolumeId(file);
  const isBaseName = name.split('/').at(-1)?.startsWith('base-') === true;
  return isBaseName && requireStorage(call.state, storage).type !== 'lvm';
}

function requireCloneable(call: Call, source: Vm, full: boolean): void {
  for (const [slot, drive] of full ? [] : parseDrives(source.config)) {
    if (isPlainCdrom(drive) || isCloudInit(drive) || isBaseVolume(call, drive.file)) continue;
    throw serverError(`Linked clone feature is not supported for '${drive.file}' (${slot})`);
  }
}

function isFullClone(call: Call, source: Vm): boolean {
  const full = call.optional('full') === undefined ? !isTemplate(source) : call.flag('full');
  for (const name of ['storage', 'format']) {
    if (!full && call.optional(name) !== undefined) {
      throw serverError(`parameter '${name}' not allowed for linked clones`);
    }
  }
  return full;
}

function planClone(call: Call): ClonePlan {
  const id = call.integer('vmid');
  const newId = call.integer('newid');
  const requestedTarget = call.optional('target');
  const target =
    requestedTarget === call.host || requestedTarget === 'localhost' ? undefined : requestedTarget;
  const source = findVm(call.core, call.host, id);
  const pool = call.optional('pool');
  if (pool !== undefined) call.core.access.requirePool(pool);
  checkCloneTarget(call, target);
  requireQuorum(call.core);
  checkLock(source);
  const config = findSourceConfig(call, source);
  const full = isFullClone(call, source);
  const shared = requireStorageAccess(call, config);
  requireBridgePrivileges(call.core, call.authUser, config);
  if (target !== undefined && !shared) {
    throw serverError(`can't clone VM to node '${target}' (VM uses local storage)`);
  }
  if (call.state.vms.get(newId)?.host === call.host) {
    throw serverError(`unable to create VM ${newId}: config file already exists`);
  }
  requireCloneable(call, source, full);
  return { source, config, newId, full, target };
}

const NOT_COPIED = /^(?:unused\d+|template|lock|parent|snaptime|vmstate|snapstate)$/;

function buildConfig(call: Call, plan: ClonePlan): Record<string, string> {
  const { state } = call;
  const config: Record<string, string> = {};
  for (const [name, value] of Object.entries(plan.config)) {
    if (NOT_COPIED.test(name)) continue;
    config[name] = /^net\d+$/.test(name)
      ? formatNic({ ...parseNic(value), mac: undefined }, state.generateMac())
      : value;
  }
  config['smbios1'] = withSmbiosUuid(config['smbios1'], state.random.uuid());
  if (config['vmgenid'] !== undefined) config['vmgenid'] = state.random.uuid();
  const sourceName = plan.config['name'] ?? String(plan.source.id);
  config['name'] = call.optional('name') ?? `Copy-of-VM-${sourceName}`;
  const description = call.optional('description');
  if (description !== undefined && description !== '') config['description'] = description;
  return config;
}

/** The description is a comment in the temporary config file, which the API shows as description. */
const TEMPORARY_CONFIG: VmOptions = { lock: 'clone', description: ' qmclone temporary file' };

/** The base volume as it appears in the name of a linked clone; LVM-thin does not include it. */
function findBaseName(call: Call, storage: string, name: string): string | undefined {
  const { path, type } = requireStorage(call.state, storage);
  if (type === 'lvmthin') return undefined;
  const isFile = path !== undefined;
  return name
    .split('/')
    .slice(isFile ? -2 : -1)
    .join('/');
}

/** Copies one drive and returns the new one. */
async function cloneDrive(
  call: Call,
  plan: ClonePlan,
  at: {
    readonly slot: string;
    readonly drive: Drive;
    readonly context: TaskContext;
    readonly created: string[];
  },
): Promise<Drive> {
  const { slot, drive, context } = at;
  const { core, host } = call;
  const volume = findVolume(core.state, host, drive.file);
  const origin = parseVolumeId(drive.file);
  if (volume === undefined) throw serverError(`volume '${drive.file}' does not exist`);
  const isCi = isCloudInit(drive);
  const linked = !plan.full && !isCi;
  const storage = call.optional('storage') ?? origin.storage;
  context.log(`create ${linked ? 'linked' : 'full'} clone of drive ${slot} (${drive.file})`);
  const fresh = {
    vmId: plan.newId,
    size: volume.size,
    format: linked ? 'qcow2' : (call.optional('format') ?? volume.format),
    ...(isCi ? { suffix: 'cloudinit' } : {}),
    base: linked ? findBaseName(call, storage, origin.name) : undefined,
    image: volume.image,
    guestState: structuredClone(volume.guestState),
    everBooted: volume.everBooted,
  };
  const file = await allocateVolume(core, { storage, host }, { volume: fresh, work: context.work });
  at.created.push(file);
  if (linked) await context.work(SIMULATED_DURATIONS_MS.linkedClone);
  else {
    const ms = (SIMULATED_DURATIONS_MS.fullClonePerGib * volume.size) / 2 ** 30;
    await copyData(core, { from: drive.file, to: file, host, ms, failure: 'copy failed' }, context);
  }
  const size = isCi ? {} : { size: formatSize(volume.size) };
  return { file, options: { ...drive.options, ...size } };
}

async function copyDrives(
  call: Call,
  plan: ClonePlan,
  at: {
    readonly context: TaskContext;
    readonly created: string[];
    readonly config: Record<string, string>;
    readonly vm: Vm;
  },
): Promise<void> {
  const drives = parseDrives(plan.config).filter(
    ([, drive]) => !isPlainCdrom(drive) && drive.file !== 'none',
  );
  for (const [slot] of drives) delete at.config[slot];
  for (const [slot, drive] of drives) {
    const copy = await cloneDrive(call, plan, {
      slot,
      drive,
      context: at.context,
      created: at.created,
    });
    at.config[slot] = formatDrive(copy);
    // Proxmox writes the config after each drive: name and description are visible during the remaining copies.
    at.vm.config = { ...at.config, lock: 'clone' };
  }
}

async function cloneTask(call: Call, context: TaskContext): Promise<void> {
  const plan = planClone(call);
  const { state } = call;
  if (state.version !== '8.4') {
    context.log(`creating a clone of VM ${plan.source.id} with ID ${plan.newId}`);
  }
  const config = buildConfig(call, plan);
  if (state.findGuest(plan.newId) !== undefined) {
    const file = `/etc/pve/nodes/${call.host}/qemu-server/${plan.newId}.conf`;
    throw serverError(`close (rename) atomic file '${file}' failed: File exists`);
  }
  const vm = emptyVm(plan.newId, call.host, state.clock.now());
  vm.config = { ...TEMPORARY_CONFIG };
  state.vms.set(plan.newId, vm);
  const created: string[] = [];
  try {
    await copyDrives(call, plan, { context, created, config, vm });
    vm.config = config;
    if (plan.target !== undefined) vm.host = plan.target;
    state.recordStatus(vm);
    state.pools.get(call.text('pool'))?.vms.add(plan.newId);
    state.accessVersion += 1;
  } catch (error) {
    if (context.isKilled()) throw error;
    await freeVolumes(call.core, { host: call.host, volumes: created }, context.log);
    if (state.vms.get(plan.newId) === vm) state.vms.delete(plan.newId);
    throw serverError(`clone failed: ${errorText(error)}`);
  }
}

export function cloneVm(call: Call): string {
  const { source, newId } = planClone(call);
  const timeoutMs = SIMULATED_TIMEOUTS_MS.cloneLock;
  const host = call.host;
  const shared = source.running === undefined;
  return call.forkTask({ type: 'qmclone', id: source.id }, (context) =>
    withVmLock(call.core, { host, id: source.id, timeoutMs, shared }, () =>
      withVmLock(call.core, { host, id: newId, timeoutMs }, () => cloneTask(call, context)),
    ),
  );
}
