// SPDX-License-Identifier: Apache-2.0
// Creates the volumes of requested drives: permission checks before the task; inside the task allocation, import or
// a check that the volume exists.
import { ROOT_USER } from '../access/permissions.ts';
import { parameterError, permissionError, serverError } from '../api-error.ts';
import type { Core } from '../core.ts';
import { formatSize } from '../state/cluster-state.ts';
import type { Storage, Volume } from '../state/model.ts';
import { allocateVolume, copyData, freeVolumes } from '../storage/allocation.ts';
import { requireVolumeAccess } from '../storage/volume-access.ts';
import {
  findVolume,
  type NewVolume,
  parseVolumeName,
  requireActiveStorage,
  requireStorage,
  splitVolumeId,
  volumePath,
  volumesOn,
} from '../storage/volumes.ts';
import { SIMULATED_DURATIONS_MS } from '../tasks/durations.ts';
import {
  areOptionsConsistent,
  type Drive,
  formatDrive,
  isCdrom,
  isCloudInit,
  type NewDisk,
  parseDrives,
  parseNewDisk,
  type VmOptions,
} from './drives.ts';

/** The part of a task context that drive work needs; synchronous calls pass their own. */
export interface WorkContext {
  readonly log: (line: string) => void;
  readonly work: (ms: number) => Promise<void>;
}

export interface DriveRequest {
  readonly authUser: string;
  readonly host: string;
  readonly vmId: number;
  readonly settings: VmOptions;
  readonly defaultStorage?: string | undefined;
}

function requireImportAccess(
  core: Core,
  request: DriveRequest,
  at: { readonly slot: string; readonly source: string },
): void {
  const id = splitVolumeId(at.source);
  const kind =
    id === undefined ? undefined : parseVolumeName(requireStorage(core.state, id.storage), id.name);
  if (kind !== undefined && kind.content !== 'images' && kind.content !== 'import') {
    throw parameterError({
      [at.slot]: `${at.source} has wrong type '${kind.content}' - needs to be 'images' or 'import'`,
    });
  }
  if (kind?.vmId !== undefined) {
    return core.access.require(request.authUser, {
      path: `/vms/${kind.vmId}`,
      privileges: ['VM.Clone'],
    });
  }
  requireVolumeAccess(core, {
    authUser: request.authUser,
    vmId: request.vmId,
    volumeId: at.source,
  });
}

function requireNewDiskAccess(core: Core, request: DriveRequest, disk: NewDisk): void {
  const storage = disk.storage ?? request.defaultStorage;
  if (storage === undefined) throw serverError('no storage ID specified (and no default storage)');
  core.access.require(request.authUser, {
    path: `/storage/${storage}`,
    privileges: ['Datastore.AllocateSpace'],
  });
  if (!requireStorage(core.state, storage).content.includes('images')) {
    throw parameterError({ storage: `storage '${storage}' does not support vm images` });
  }
}

function requireExistingVolumeAccess(
  core: Core,
  request: DriveRequest,
  at: { readonly slot: string; readonly drive: Drive },
): void {
  const { file } = at.drive;
  requireVolumeAccess(core, { authUser: request.authUser, vmId: request.vmId, volumeId: file });
  const id = splitVolumeId(file);
  if (id === undefined) return;
  const { content } = parseVolumeName(requireStorage(core.state, id.storage), id.name);
  if (content !== 'images' && content !== 'iso') {
    throw parameterError({ [at.slot]: "content type needs to be 'images' or 'iso'" });
  }
}

function requireOneDriveAccess(
  core: Core,
  request: DriveRequest,
  at: { readonly slot: string; readonly drive: Drive },
): void {
  const { drive } = at;
  const disk = isCdrom(drive) ? undefined : parseNewDisk(drive);
  if (drive.file === 'none' || isCloudInit(drive)) {
    // Nothing to check.
  } else if (isCdrom(drive) && drive.file === 'cdrom') {
    if (
      request.authUser !== ROOT_USER &&
      !core.access.allows(request.authUser, { path: '/', privileges: ['Sys.Console'] })
    ) {
      throw permissionError('/, Sys.Console');
    }
  } else if (disk !== undefined) {
    requireNewDiskAccess(core, request, disk);
  } else {
    requireExistingVolumeAccess(core, request, at);
  }
  const source = drive.options['import-from'];
  if (source !== undefined) requireImportAccess(core, request, { slot: at.slot, source });
}

/** An `unusedN` option must refer to a disk image that the caller can access. */
function requireUnusedVolumeAccess(core: Core, request: DriveRequest): void {
  for (const [name, value] of Object.entries(request.settings)) {
    if (!/^unused\d+$/.test(name)) continue;
    const volumeId = value.split(',')[0]?.replace(/^file=/, '') ?? '';
    if (splitVolumeId(volumeId) === undefined) {
      throw parameterError({ [name]: `not a valid volid: ${volumeId}` });
    }
    requireVolumeAccess(core, {
      authUser: request.authUser,
      vmId: request.vmId,
      volumeId,
      content: 'images',
    });
  }
}

/** The checks before the task: storages, volumes, import sources. Snippets of `cicustom` are checked at the start only. */
export function requireDriveAccess(core: Core, request: DriveRequest): void {
  for (const [slot, drive] of parseDrives(request.settings)) {
    // Proxmox skips a drive here that it cannot parse, and refuses it later.
    if (!areOptionsConsistent(slot, drive.options)) continue;
    requireOneDriveAccess(core, request, { slot, drive });
  }
  requireUnusedVolumeAccess(core, request);
  const { vmstatestorage } = request.settings;
  if (vmstatestorage !== undefined) {
    core.access.require(request.authUser, {
      path: `/storage/${vmstatestorage}`,
      privileges: ['Datastore.AllocateSpace'],
    });
  }
}

interface DriveCreation extends DriveRequest {
  readonly core: Core;
  readonly workContext: WorkContext;
  readonly created: string[];
  readonly result: Record<string, string>;
  /** The VM's options besides the requested ones. */
  readonly config: VmOptions;
}

function findCloudInitSlot(creation: DriveCreation, slot: string): string | undefined {
  return parseDrives({ ...creation.config, ...creation.result }).find(
    ([name, drive]) => name !== slot && isCloudInit(drive),
  )?.[0];
}

async function createCloudInitDrive(
  creation: DriveCreation,
  slot: string,
  drive: Drive,
): Promise<void> {
  const other = findCloudInitSlot(creation, slot);
  if (other !== undefined) {
    throw serverError(`${slot} - cloud-init drive is already attached at '${other}'`);
  }
  const id = splitVolumeId(drive.file)?.storage ?? creation.defaultStorage;
  if (id === undefined) throw serverError('no storage ID specified (and no default storage)');
  const storage = requireStorage(creation.core.state, id);
  const format = storage.path === undefined ? 'raw' : (drive.options['format'] ?? 'qcow2');
  const volume = { vmId: creation.vmId, size: 4 * 2 ** 20, format, suffix: 'cloudinit' };
  const location = { storage: id, host: creation.host };
  const file = await allocateVolume(creation.core, location, {
    volume,
    work: creation.workContext.work,
  });
  creation.created.push(file);
  const { format: _format, ...options } = drive.options;
  creation.result[slot] = formatDrive({ file, options: { ...options, media: 'cdrom' } });
}

/** Finds the volume to import; these checks run only inside the task. */
function requireImportVolume(creation: DriveCreation, source: string): Volume {
  const { core, host } = creation;
  const id = splitVolumeId(source);
  if (id === undefined) return requireImportFile(creation, source);
  const storage = requireActiveStorage(core.state, id.storage, host);
  const volume = findVolume(core.state, host, source);
  if (volume === undefined) {
    const path = volumePath(storage, id.name);
    throw serverError(
      id.name.startsWith('import/')
        ? `failed to stat '${path}'`
        : `cannot import from '${source}' - could not get size of ${source}`,
    );
  }
  if (volume.backingFile !== undefined && volume.content === 'import') {
    throw serverError(
      `backing file not allowed for untrusted image '${volumePath(storage, id.name)}'!`,
    );
  }
  return volume;
}

/** A path of the host, for root@pam only: a file of a storage that is on the host. */
function requireImportFile({ core, host }: DriveCreation, path: string): Volume {
  for (const storage of core.state.storages.values()) {
    for (const volume of volumesOn(storage, host).values()) {
      if (storage.path === undefined || volumePath(storage, volume.name) !== path) continue;
      if (volume.backingFile === undefined) return volume;
      throw serverError(`backing file not allowed for untrusted image '${path}'!`);
    }
  }
  throw serverError(`can't find file '${path}'`);
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

/** Fields that a copy inherits from its source. */
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

async function importData(
  { core, host, workContext }: DriveCreation,
  { drive, source, to }: { readonly drive: Drive; readonly source: Volume; readonly to: string },
): Promise<void> {
  const from = drive.options['import-from'] ?? '';
  const ms = (SIMULATED_DURATIONS_MS.importPerGib * source.size) / 2 ** 30;
  const failure = `cannot import from '${from}' - copy failed`;
  await copyData(core, { from, to, host, ms, failure }, workContext);
}

function orderedSize(slot: string, disk: ReturnType<typeof parseNewDisk>): number {
  return SMALL_DISKS[slot] ?? disk?.bytes ?? 0;
}

async function createDisk(creation: DriveCreation, slot: string, drive: Drive): Promise<void> {
  const { core, host, workContext } = creation;
  const disk = parseNewDisk(drive);
  const id = disk?.storage ?? creation.defaultStorage;
  if (id === undefined) throw serverError('no storage ID specified (and no default storage)');
  const { 'import-from': from, format: _format, ...options } = drive.options;
  const source = from === undefined ? undefined : requireImportVolume(creation, from);
  const storage = requireActiveStorage(core.state, id, host);
  const size = source === undefined ? orderedSize(slot, disk) : (source.virtualSize ?? source.size);
  const format = copyFormat(storage, drive, source);
  const volume = { vmId: creation.vmId, size, format, ...inherited(source) };
  const file = await allocateVolume(
    core,
    { storage: id, host },
    { volume, work: workContext.work },
  );
  creation.created.push(file);
  if (source !== undefined) await importData(creation, { drive, source, to: file });
  creation.result[slot] = formatDrive({ file, options: { ...options, size: formatSize(size) } });
}

function attachVolume(creation: DriveCreation, slot: string, drive: Drive): void {
  const { core, host, authUser, vmId } = creation;
  requireVolumeAccess(core, { authUser, vmId, volumeId: drive.file });
  const id = splitVolumeId(drive.file);
  const volume = findVolume(core.state, host, drive.file);
  if (id !== undefined) requireActiveStorage(core.state, id.storage, host);
  if (volume === undefined) throw serverError(`volume '${drive.file}' does not exist`);
  const { options } = drive;
  const { format } = options;
  if (format !== undefined && format !== volume.format) {
    throw serverError(
      `drive '${slot}' - volume '${drive.file}' - 'format=${format}' option different from storage format '${volume.format}'`,
    );
  }
  creation.result[slot] = formatDrive({
    file: drive.file,
    options: { ...options, size: formatSize(volume.size) },
  });
}

async function createDrive(creation: DriveCreation, slot: string, drive: Drive): Promise<void> {
  if (drive.file === 'none' || drive.file === 'cdrom') {
    const { size: _size, ...options } = drive.options;
    creation.result[slot] = formatDrive({ file: drive.file, options });
    return;
  }
  const isOrder = splitVolumeId(drive.file)?.name === 'cloudinit' || drive.file === 'cloudinit';
  if (isOrder) await createCloudInitDrive(creation, slot, drive);
  else if (parseNewDisk(drive) !== undefined) await createDisk(creation, slot, drive);
  else return attachVolume(creation, slot, drive);
  creation.workContext.log(`${slot}: successfully created disk '${creation.result[slot]}'`);
}

export interface CreatedDrives {
  readonly options: VmOptions;
  readonly volumes: readonly string[];
}

/** Creates all requested drives; on an error, frees the volumes created so far. */
export async function createDrives(
  core: Core,
  request: DriveRequest & { readonly config: VmOptions },
  workContext: WorkContext,
): Promise<CreatedDrives> {
  const creation: DriveCreation = { ...request, core, workContext, created: [], result: {} };
  try {
    for (const [slot, drive] of parseDrives(request.settings))
      await createDrive(creation, slot, drive);
  } catch (error) {
    await freeVolumes(core, { host: request.host, volumes: creation.created }, workContext.log);
    throw error;
  }
  return { options: creation.result, volumes: creation.created };
}
