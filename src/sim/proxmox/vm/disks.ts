// SPDX-License-Identifier: Apache-2.0
// Drives in an order become volumes: access first (before any task), then allocation, import or a check that
// the volume is there (inside one).
import { ROOT } from '../access/permissions.ts';
import { failure, parameterError, permissionError } from '../api-error.ts';
import type { Core } from '../core.ts';
import { requireVolumeAccess } from '../storage/access.ts';
import {
  activeStorage,
  findVolume,
  kindOf,
  type NewVolume,
  pathOf,
  splitVolumeId,
  storageOf,
} from '../storage/volumes.ts';
import { allocate, freeAll } from '../storage/work.ts';
import { SIMULATED_DURATIONS } from '../tasks/durations.ts';
import type { Storage, Volume } from '../world/model.ts';
import { formatSize } from '../world/world.ts';
import {
  type Drive,
  drivesOf,
  isCdrom,
  isCloudInit,
  type NewDisk,
  newDiskOf,
  type Options,
  printDrive,
} from './drives.ts';

/** What work needs of a task; a synchronous call brings its own. */
export interface Labour {
  readonly log: (line: string) => void;
  readonly work: (ms: number) => Promise<void>;
}

export interface DiskOrder {
  readonly who: string;
  readonly host: string;
  readonly vmId: number;
  readonly settings: Options;
  readonly defaultStorage?: string | undefined;
}

function requireImportSource(
  core: Core,
  order: DiskOrder,
  at: { readonly slot: string; readonly source: string },
): void {
  const id = splitVolumeId(at.source);
  const kind = id === undefined ? undefined : kindOf(storageOf(core.world, id.storage), id.name);
  if (kind !== undefined && kind.content !== 'images' && kind.content !== 'import') {
    throw parameterError({
      [at.slot]: `${at.source} has wrong type '${kind.content}' - needs to be 'images' or 'import'`,
    });
  }
  if (kind?.vmId !== undefined) {
    return core.access.require(order.who, { path: `/vms/${kind.vmId}`, privileges: ['VM.Clone'] });
  }
  requireVolumeAccess(core, { who: order.who, vmId: order.vmId, volumeId: at.source });
}

function requireNewDisk(core: Core, order: DiskOrder, disk: NewDisk): void {
  const storage = disk.storage ?? order.defaultStorage;
  if (storage === undefined) throw failure('no storage ID specified (and no default storage)');
  core.access.require(order.who, {
    path: `/storage/${storage}`,
    privileges: ['Datastore.AllocateSpace'],
  });
  if (!storageOf(core.world, storage).content.includes('images')) {
    throw parameterError({ storage: `storage '${storage}' does not support vm images` });
  }
}

function requireExisting(
  core: Core,
  order: DiskOrder,
  at: { readonly slot: string; readonly drive: Drive },
): void {
  const { file } = at.drive;
  requireVolumeAccess(core, { who: order.who, vmId: order.vmId, volumeId: file });
  const id = splitVolumeId(file);
  if (id === undefined) return;
  const { content } = kindOf(storageOf(core.world, id.storage), id.name);
  if (content !== 'images' && content !== 'iso') {
    throw parameterError({ [at.slot]: "content type needs to be 'images' or 'iso'" });
  }
}

function requireDrive(
  core: Core,
  order: DiskOrder,
  at: { readonly slot: string; readonly drive: Drive },
): void {
  const { drive } = at;
  const disk = isCdrom(drive) ? undefined : newDiskOf(drive);
  if (drive.file === 'none' || isCloudInit(drive)) {
    // Nothing to check.
  } else if (isCdrom(drive) && drive.file === 'cdrom') {
    if (
      order.who !== ROOT &&
      !core.access.allows(order.who, { path: '/', privileges: ['Sys.Console'] })
    ) {
      throw permissionError('/, Sys.Console');
    }
  } else if (disk !== undefined) {
    requireNewDisk(core, order, disk);
  } else {
    requireExisting(core, order, at);
  }
  const source = drive.options['import-from'];
  if (source !== undefined) requireImportSource(core, order, { slot: at.slot, source });
}

/** A volume that is only to be remembered must be a disk, and the caller's to use. */
function requireUnused(core: Core, order: DiskOrder): void {
  for (const [name, value] of Object.entries(order.settings)) {
    if (!/^unused\d+$/.test(name)) continue;
    const volumeId = value.split(',')[0]?.replace(/^file=/, '') ?? '';
    if (splitVolumeId(volumeId) === undefined) {
      throw parameterError({ [name]: `not a valid volid: ${volumeId}` });
    }
    requireVolumeAccess(core, { who: order.who, vmId: order.vmId, volumeId, content: 'images' });
  }
}

/** The checks before a task: storages, volumes, sources of imports. */
export function requireDrives(core: Core, order: DiskOrder): void {
  for (const [slot, drive] of drivesOf(order.settings)) requireDrive(core, order, { slot, drive });
  requireUnused(core, order);
  const { vmstatestorage, cicustom } = order.settings;
  if (vmstatestorage !== undefined) {
    core.access.require(order.who, {
      path: `/storage/${vmstatestorage}`,
      privileges: ['Datastore.AllocateSpace'],
    });
  }
  for (const part of (cicustom ?? '').split(',')) {
    const volumeId = part.split('=')[1];
    if (volumeId === undefined) continue;
    requireVolumeAccess(core, { who: order.who, vmId: order.vmId, volumeId, content: 'snippets' });
  }
}

interface Making extends DiskOrder {
  readonly core: Core;
  readonly labour: Labour;
  readonly made: string[];
  readonly result: Record<string, string>;
  /** Options that the VM has besides those ordered. */
  readonly config: Options;
}

function existingCloudInit(making: Making, slot: string): string | undefined {
  return drivesOf({ ...making.config, ...making.result }).find(
    ([name, drive]) => name !== slot && isCloudInit(drive),
  )?.[0];
}

async function makeCloudInit(making: Making, slot: string, drive: Drive): Promise<void> {
  const other = existingCloudInit(making, slot);
  if (other !== undefined) {
    throw failure(`${slot} - cloud-init drive is already attached at '${other}'`);
  }
  const id = splitVolumeId(drive.file)?.storage ?? making.defaultStorage;
  if (id === undefined) throw failure('no storage ID specified (and no default storage)');
  const storage = storageOf(making.core.world, id);
  const format = storage.path === undefined ? 'raw' : (drive.options['format'] ?? 'qcow2');
  const volume = { vmId: making.vmId, size: 4 * 2 ** 20, format, suffix: 'cloudinit' };
  const place = { storage: id, host: making.host };
  const file = await allocate(making.core, place, { volume, work: making.labour.work });
  making.made.push(file);
  const { format: _format, ...options } = drive.options;
  making.result[slot] = printDrive({ file, options: { ...options, media: 'cdrom' } });
}

/** An image that is about to be imported; its faults show only now. */
function importSource(making: Making, source: string): Volume {
  const { core, host } = making;
  const id = splitVolumeId(source);
  if (id === undefined) throw failure(`could not get file size of ${source}`);
  const storage = activeStorage(core.world, id.storage, host);
  const volume = findVolume(core.world, host, source);
  if (volume === undefined) {
    const path = pathOf(storage, id.name);
    throw failure(
      id.name.startsWith('import/')
        ? `failed to stat '${path}'`
        : `cannot import from '${source}' - could not get size of ${source}`,
    );
  }
  if (volume.backingFile !== undefined && volume.content === 'import') {
    throw failure(`backing file not allowed for untrusted image '${pathOf(storage, id.name)}'!`);
  }
  return volume;
}

function imageName(volume: Volume): string | undefined {
  return volume.image ?? (volume.content === 'import' ? volume.name.split('/').at(-1) : undefined);
}

function copyFormat(storage: Storage, drive: Drive, source: Volume | undefined): string {
  if (storage.path === undefined) return 'raw';
  const inherited =
    source !== undefined && /^(?:raw|qcow2|vmdk)$/.test(source.format) ? source.format : 'raw';
  return drive.options['format'] ?? inherited;
}

const SMALL_DISKS: Readonly<Record<string, number>> = {
  efidisk0: 4 * 2 ** 20,
  tpmstate0: 4 * 2 ** 20,
};

/** What a copy takes over from its source. */
function inherited(
  source: Volume | undefined,
): Pick<NewVolume, 'image' | 'guestState' | 'everBooted'> {
  if (source === undefined) return {};
  return {
    image: imageName(source),
    guestState: source.guestState,
    everBooted: source.everBooted,
  };
}

async function makeDisk(making: Making, slot: string, drive: Drive): Promise<void> {
  const { core, host, labour } = making;
  const disk = newDiskOf(drive);
  const id = disk?.storage ?? making.defaultStorage;
  if (id === undefined) throw failure('no storage ID specified (and no default storage)');
  const { 'import-from': from, format: _format, ...options } = drive.options;
  const source = from === undefined ? undefined : importSource(making, from);
  const storage = activeStorage(core.world, id, host);
  const ordered = SMALL_DISKS[slot] ?? disk?.bytes ?? 0;
  const size = source === undefined ? ordered : (source.virtualSize ?? source.size);
  const format = copyFormat(storage, drive, source);
  const volume = { vmId: making.vmId, size, format, ...inherited(source) };
  const file = await allocate(core, { storage: id, host }, { volume, work: labour.work });
  making.made.push(file);
  if (source !== undefined) {
    await labour.work((SIMULATED_DURATIONS.importPerGib * source.size) / 2 ** 30);
  }
  making.result[slot] = printDrive({ file, options: { ...options, size: formatSize(size) } });
}

function useVolume(making: Making, slot: string, drive: Drive): void {
  const { core, host, who, vmId } = making;
  requireVolumeAccess(core, { who, vmId, volumeId: drive.file });
  const id = splitVolumeId(drive.file);
  const volume = findVolume(core.world, host, drive.file);
  if (id !== undefined) activeStorage(core.world, id.storage, host);
  if (volume === undefined) throw failure(`volume '${drive.file}' does not exist`);
  const { options } = drive;
  const { format } = options;
  if (format !== undefined && format !== volume.format) {
    throw failure(
      `drive '${slot}' - volume '${drive.file}' - 'format=${format}' option different from storage format '${volume.format}'`,
    );
  }
  making.result[slot] = printDrive({
    file: drive.file,
    options: { ...options, size: formatSize(volume.size) },
  });
}

async function makeDrive(making: Making, slot: string, drive: Drive): Promise<void> {
  if (drive.file === 'none' || drive.file === 'cdrom') {
    const { size: _size, ...options } = drive.options;
    making.result[slot] = printDrive({ file: drive.file, options });
    return;
  }
  const isOrder = splitVolumeId(drive.file)?.name === 'cloudinit' || drive.file === 'cloudinit';
  if (isOrder) await makeCloudInit(making, slot, drive);
  else if (newDiskOf(drive) !== undefined) await makeDisk(making, slot, drive);
  else return useVolume(making, slot, drive);
  making.labour.log(`${slot}: successfully created disk '${making.result[slot]}'`);
}

export interface MadeDisks {
  readonly options: Options;
  readonly volumes: readonly string[];
}

/** Carries the orders out; a failure takes back what was made. */
export async function makeDrives(
  core: Core,
  order: DiskOrder & { readonly config: Options },
  labour: Labour,
): Promise<MadeDisks> {
  const making: Making = { ...order, core, labour, made: [], result: {} };
  try {
    for (const [slot, drive] of drivesOf(order.settings)) await makeDrive(making, slot, drive);
  } catch (error) {
    await freeAll(core, { host: order.host, volumes: making.made }, labour.log);
    throw error;
  }
  return { options: making.result, volumes: making.made };
}
