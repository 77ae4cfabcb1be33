// SPDX-License-Identifier: Apache-2.0
// POST clone: the same checks before and inside the task; the new id is taken only inside it.
import { failure, parameterError, textOf } from '../api-error.ts';
import { type Call, requireQuorum, withVmLock } from '../core.ts';
import { enabledStorage, findVolume, parseVolumeId, storageOf } from '../storage/volumes.ts';
import { allocate, freeAll } from '../storage/work.ts';
import { SIMULATED_DURATIONS, SIMULATED_TIMEOUTS } from '../tasks/durations.ts';
import type { TaskContext } from '../tasks/engine.ts';
import type { Vm } from '../world/model.ts';
import { formatSize } from '../world/world.ts';
import { checkLock, isTemplate, vmFoundOn, withSmbiosUuid } from './config.ts';
import { emptyVm } from './create.ts';
import {
  type Drive,
  drivesOf,
  isCloudInit,
  isPlainCdrom,
  type Options,
  parseNic,
  printDrive,
  printNic,
} from './drives.ts';
import { requireBridges } from './option-access.ts';

interface Plan {
  readonly source: Vm;
  readonly config: Options;
  readonly newId: number;
  readonly full: boolean;
  readonly target: string | undefined;
}

function checkTarget(call: Call, target: string | undefined): void {
  if (target !== undefined && !call.world.hosts.has(target)) {
    throw failure(`no such cluster node '${target}'`);
  }
  const storage = call.optional('storage');
  if (storage === undefined) return;
  const config = enabledStorage(call.world, storage, call.host);
  if (!config.content.includes('images')) {
    throw parameterError({ storage: `storage '${storage}' does not support vm images` });
  }
  if (target === undefined) return;
  enabledStorage(call.world, storage, target);
  if (!config.shared) throw failure(`can't clone to non-shared storage '${storage}'`);
}

/** Whether all that the VM uses can be seen from every host. */
function requireStorages(call: Call, config: Options): boolean {
  let shared = true;
  for (const [, drive] of drivesOf(config)) {
    if (drive.file === 'none') continue;
    if (drive.file === 'cdrom') {
      call.require({ path: '/', privileges: ['Sys.Console'] });
      continue;
    }
    const { storage } = parseVolumeId(drive.file);
    if (!storageOf(call.world, storage).shared) shared = false;
    if (isPlainCdrom(drive)) continue;
    const place = call.optional('storage') ?? storage;
    call.require({ path: `/storage/${place}`, privileges: ['Datastore.AllocateSpace'] });
  }
  return shared;
}

function sourceConfig(call: Call, source: Vm): Options {
  const name = call.optional('snapname');
  if (name === undefined) return source.config;
  const snapshot = source.snapshots.find((known) => known.name === name);
  if (snapshot === undefined) throw failure(`snapshot '${name}' does not exist`);
  return snapshot.config;
}

/** Linked clones rest on base volumes, which only templates have. */
function isBase(call: Call, file: string): boolean {
  const { storage, name } = parseVolumeId(file);
  const isBaseName = name.split('/').at(-1)?.startsWith('base-') === true;
  return isBaseName && storageOf(call.world, storage).type !== 'lvm';
}

function requireCloneable(call: Call, source: Vm, full: boolean): void {
  for (const [slot, drive] of full ? [] : drivesOf(source.config)) {
    if (isPlainCdrom(drive) || isCloudInit(drive) || isBase(call, drive.file)) continue;
    const what = call.world.version === '8.4' ? `drive '${slot}'` : `'${drive.file}' (${slot})`;
    throw failure(`Linked clone feature is not supported for ${what}`);
  }
}

function fullWanted(call: Call, source: Vm): boolean {
  const full = call.optional('full') === undefined ? !isTemplate(source) : call.flag('full');
  for (const name of ['storage', 'format']) {
    if (!full && call.optional(name) !== undefined) {
      throw failure(`parameter '${name}' not allowed for linked clones`);
    }
  }
  return full;
}

function check(call: Call): Plan {
  const id = call.integer('vmid');
  const newId = call.integer('newid');
  const wanted = call.optional('target');
  const target = wanted === call.host || wanted === 'localhost' ? undefined : wanted;
  const source = vmFoundOn(call.core, call.host, id);
  const pool = call.optional('pool');
  if (pool !== undefined) call.core.access.requirePool(pool);
  checkTarget(call, target);
  requireQuorum(call.core);
  checkLock(source);
  const config = sourceConfig(call, source);
  const full = fullWanted(call, source);
  const shared = requireStorages(call, config);
  requireBridges(call.core, call.who, config);
  if (target !== undefined && !shared) {
    throw failure(`can't clone VM to node '${target}' (VM uses local storage)`);
  }
  if (call.world.vms.get(newId)?.host === call.host) {
    throw failure(`unable to create VM ${newId}: config file already exists`);
  }
  requireCloneable(call, source, full);
  return { source, config, newId, full, target };
}

const NOT_COPIED = /^(?:unused\d+|template|lock|parent|snaptime|vmstate|snapstate)$/;

function newConfig(call: Call, plan: Plan): Record<string, string> {
  const { world } = call;
  const config: Record<string, string> = {};
  for (const [name, value] of Object.entries(plan.config)) {
    if (NOT_COPIED.test(name)) continue;
    config[name] = /^net\d+$/.test(name)
      ? printNic({ ...parseNic(value), mac: undefined }, world.newMac())
      : value;
  }
  config['smbios1'] = withSmbiosUuid(config['smbios1'], world.random.uuid());
  if (config['vmgenid'] !== undefined) config['vmgenid'] = world.random.uuid();
  const sourceName = plan.config['name'] ?? String(plan.source.id);
  config['name'] = call.optional('name') ?? `Copy-of-VM-${sourceName}`;
  const description = call.optional('description');
  if (description !== undefined && description !== '') config['description'] = description;
  return config;
}

/** A comment in the file, which the API shows as the description. */
const TEMPORARY: Options = { lock: 'clone', description: ' qmclone temporary file' };

/** The name a linked clone rests on, as its own name shows it; thin LVM does not show it. */
function baseName(call: Call, storage: string, name: string): string | undefined {
  const { path, type } = storageOf(call.world, storage);
  if (type === 'lvmthin') return undefined;
  const isFile = path !== undefined;
  return name
    .split('/')
    .slice(isFile ? -2 : -1)
    .join('/');
}

/** Copies one drive; returns it in its new form. */
async function cloneDrive(
  call: Call,
  plan: Plan,
  at: {
    readonly slot: string;
    readonly drive: Drive;
    readonly context: TaskContext;
    readonly made: string[];
  },
): Promise<Drive> {
  const { slot, drive, context } = at;
  const { core, host } = call;
  const volume = findVolume(core.world, host, drive.file);
  const origin = parseVolumeId(drive.file);
  if (volume === undefined) throw failure(`volume '${drive.file}' does not exist`);
  const isCi = isCloudInit(drive);
  const linked = !plan.full && !isCi;
  const storage = call.optional('storage') ?? origin.storage;
  context.log(`create ${linked ? 'linked' : 'full'} clone of drive ${slot} (${drive.file})`);
  const fresh = {
    vmId: plan.newId,
    size: volume.size,
    format: linked ? 'qcow2' : (call.optional('format') ?? volume.format),
    ...(isCi ? { suffix: 'cloudinit' } : {}),
    base: linked ? baseName(call, storage, origin.name) : undefined,
    image: volume.image,
    guestState: structuredClone(volume.guestState),
    everBooted: volume.everBooted,
  };
  const file = await allocate(core, { storage, host }, { volume: fresh, work: context.work });
  at.made.push(file);
  if (linked) await context.work(SIMULATED_DURATIONS.linkedClone);
  else await context.work((SIMULATED_DURATIONS.fullClonePerGib * volume.size) / 2 ** 30);
  const size = isCi ? {} : { size: formatSize(volume.size) };
  return { file, options: { ...drive.options, ...size } };
}

async function copyDrives(
  call: Call,
  plan: Plan,
  at: {
    readonly context: TaskContext;
    readonly made: string[];
    readonly config: Record<string, string>;
    readonly vm: Vm;
  },
): Promise<void> {
  const drives = drivesOf(plan.config).filter(
    ([, drive]) => !isPlainCdrom(drive) && drive.file !== 'none',
  );
  for (const [slot] of drives) delete at.config[slot];
  for (const [slot, drive] of drives) {
    const copy = await cloneDrive(call, plan, { slot, drive, context: at.context, made: at.made });
    at.config[slot] = printDrive(copy);
    // Written after each drive: name and description show while the others are still being copied.
    at.vm.config = { ...at.config, lock: 'clone' };
  }
}

async function clone(call: Call, context: TaskContext): Promise<void> {
  const plan = check(call);
  const { world } = call;
  if (world.version !== '8.4') {
    context.log(`creating a clone of VM ${plan.source.id} with ID ${plan.newId}`);
  }
  const config = newConfig(call, plan);
  if (world.guestHost(plan.newId) !== undefined) {
    const file = `/etc/pve/nodes/${call.host}/qemu-server/${plan.newId}.conf`;
    throw failure(`close (rename) atomic file '${file}' failed: File exists`);
  }
  const vm = emptyVm(plan.newId, call.host, world.clock.now());
  vm.config = { ...TEMPORARY };
  world.vms.set(plan.newId, vm);
  const made: string[] = [];
  try {
    await copyDrives(call, plan, { context, made, config, vm });
    vm.config = config;
    if (plan.target !== undefined) vm.host = plan.target;
    world.touch(vm);
    world.pools.get(call.text('pool'))?.vms.add(plan.newId);
    world.accessVersion += 1;
  } catch (error) {
    if (context.signal.aborted) throw error;
    await freeAll(call.core, { host: call.host, volumes: made }, context.log);
    if (world.vms.get(plan.newId) === vm) world.vms.delete(plan.newId);
    throw failure(`clone failed: ${textOf(error)}`);
  }
}

export function cloneVm(call: Call): string {
  const { source, newId } = check(call);
  const timeoutMs = SIMULATED_TIMEOUTS.cloneLock;
  const host = call.host;
  const shared = source.running === undefined;
  return call.fork({ type: 'qmclone', id: source.id }, (context) =>
    withVmLock(call.core, { host, id: source.id, timeoutMs, shared }, () =>
      withVmLock(call.core, { host, id: newId, timeoutMs }, () => clone(call, context)),
    ),
  );
}
