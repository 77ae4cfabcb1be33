// SPDX-License-Identifier: Apache-2.0
// Storages of a host and their volumes: list, show, remove, allocate.
import { parameterError, serverError } from '../api-error.ts';
import type { Call, Handlers } from '../core.ts';
import { splitList } from '../schema/formats.ts';
import type { Storage, Volume } from '../state/model.ts';
import { allocateVolume, freeVolume } from '../storage/allocation.ts';
import { requireVolumeAccess } from '../storage/volume-access.ts';
import {
  findVolume,
  isStorageAvailable,
  parseVolumeId,
  parseVolumeName,
  requireActiveStorage,
  requireStorage,
  splitVolumeId,
  volumePath,
  volumesOn,
} from '../storage/volumes.ts';
import { formatStorage } from './node-stats.ts';
import { STORAGE_DEFINITION_HANDLERS } from './storage-definitions.ts';
import { TRANSFER_HANDLERS } from './transfer.ts';

const VISIBLE_WITH = {
  privileges: ['Datastore.Audit', 'Datastore.AllocateSpace'],
  any: true,
} as const;

/** Without a content filter, the list includes disabled storages and those of other hosts. */
function isListed(call: Call, storage: Storage): boolean {
  const contents = call.optional('content');
  if (contents === undefined) return true;
  const isRequested = splitList(contents).some((type) => storage.content.includes(type));
  return isRequested && isStorageAvailable(storage, call.host);
}

function listOnNode(call: Call): unknown {
  const only = call.optional('storage');
  const requested = call.optional('target');
  const target = requested === call.host || requested === 'localhost' ? undefined : requested;
  const listed = [...call.state.storages.values()].filter((storage) => isListed(call, storage));
  if (only !== undefined && !listed.some(({ id }) => id === only)) {
    throw parameterError({ storage: 'No such storage.' });
  }
  return listed
    .filter((storage) => call.isAllowed({ path: `/storage/${storage.id}`, ...VISIBLE_WITH }))
    .filter((storage) => only === undefined || storage.id === only)
    .filter((storage) => storage.enabled || !call.flag('enabled'))
    .filter(
      (storage) =>
        target === undefined ||
        (storage.shared && isConfiguredFor(storage, call.host) && isConfiguredFor(storage, target)),
    )
    .map((storage) => formatStorage(storage, call.host));
}

function isConfiguredFor(storage: Storage, host: string): boolean {
  return storage.hosts === undefined || storage.hosts.includes(host);
}

function storageStatus(call: Call): unknown {
  const storage = call.state.storages.get(call.text('storage'));
  if (storage === undefined) throw parameterError({ storage: 'No such storage.' });
  const { storage: _id, used_fraction: _fraction, ...entry } = formatStorage(storage, call.host);
  return entry;
}

function formatVolume(storage: Storage, volume: Volume): Record<string, unknown> {
  const base = volume.base === undefined ? {} : { parent: volume.base.split('/').at(-1) };
  return {
    volid: `${storage.id}:${volume.name}`,
    content: volume.content,
    format: volume.content === 'vztmpl' ? `t${volume.format}` : volume.format,
    size: volume.size,
    ctime: volume.createdAt,
    ...(volume.content === 'images' && storage.path !== undefined ? { used: 0 } : {}),
    ...(volume.vmId === undefined ? {} : { vmid: volume.vmId }),
    ...base,
  };
}

/** Disks of VMs and containers are not distinguished. */
function isAllowedContent(storage: Storage, { content }: Volume): boolean {
  if (content !== 'images') return storage.content.includes(content);
  return storage.content.includes('images') || storage.content.includes('rootdir');
}

/** Snippets and import images have no owner and match every VM. */
function isVisibleToVm({ content, vmId }: Volume, id: number): boolean {
  return content === 'snippets' || content === 'import' || vmId === id;
}

function canRead(call: Call, volumeId: string): boolean {
  try {
    requireVolumeAccess(call.core, { authUser: call.authUser, volumeId });
    return true;
  } catch {
    return false;
  }
}

function listContent(call: Call): unknown {
  const storage = requireActiveStorage(call.state, call.text('storage'), call.host);
  const content = call.optional('content');
  const vmid = call.optional('vmid');
  return [...volumesOn(storage, call.host).values()]
    .filter((volume) => content === undefined || volume.content === content)
    .filter((volume) => isAllowedContent(storage, volume))
    .filter((volume) => vmid === undefined || isVisibleToVm(volume, Number(vmid)))
    .filter((volume) => canRead(call, `${storage.id}:${volume.name}`))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map((volume) => formatVolume(storage, volume));
}

/** The `volume` parameter may include the storage or not. */
function readVolumeId(call: Call): string {
  const volume = call.text('volume');
  const storage = call.optional('storage');
  if (!volume.includes(':')) {
    if (storage === undefined) {
      throw parameterError({ volume: 'no storage specified - incomplete volume ID' });
    }
    return `${storage}:${volume}`;
  }
  const id = splitVolumeId(volume);
  if (id === undefined)
    throw parameterError({ volume: `unable to parse volume ID '${volume}'\n\n` });
  if (storage !== undefined && storage !== id.storage) {
    throw parameterError({ volume: `storage ID mismatch (${id.storage} != ${storage})\n` });
  }
  return volume;
}

function getVolume(call: Call): unknown {
  const id = readVolumeId(call);
  requireVolumeAccess(call.core, { authUser: call.authUser, volumeId: id });
  const { storage: storageId, name } = parseVolumeId(id);
  const storage = requireStorage(call.state, storageId);
  const volume = findVolume(call.state, call.host, id);
  if (volume === undefined) throw serverError(`volume_size_info on '${id}' failed - no format`);
  if (volume.size === 0) throw serverError(`volume '${id}' has size zero`);
  return {
    path: volumePath(storage, name),
    size: volume.virtualSize ?? volume.size,
    used: volume.size,
    format: volume.content === 'images' || volume.content === 'import' ? volume.format : 'raw',
  };
}

/** Only backups accept notes and protection, and backups are not simulated. */
function updateVolume(call: Call): null {
  const id = readVolumeId(call);
  requireVolumeAccess(call.core, { authUser: call.authUser, volumeId: id });
  const { storage: storageId, name } = parseVolumeId(id);
  const isBackup =
    parseVolumeName(requireStorage(call.state, storageId), name).content === 'backup';
  if (!isBackup && call.optional('notes') !== undefined) {
    throw serverError('only backups can have notes');
  }
  if (!isBackup && call.optional('protected') !== undefined) {
    throw serverError("only backups support attribute 'protected'");
  }
  return null;
}

async function removeVolume(call: Call): Promise<string | null> {
  const id = readVolumeId(call);
  const { storage: storageId, name } = parseVolumeId(id);
  const kind = parseVolumeName(requireStorage(call.state, storageId), name);
  const path = `/storage/${storageId}`;
  if (kind.content === 'backup' && kind.vmId !== undefined) {
    call.require({ path, privileges: ['Datastore.AllocateSpace'] });
    call.require({ path: `/vms/${kind.vmId}`, privileges: ['VM.Backup'] });
  } else {
    call.require({ path, privileges: ['Datastore.Allocate'] });
  }
  const owner = kind.vmId === undefined ? '' : `${kind.vmId}@`;
  const upid = call.forkTask({ type: 'imgdel', id: `${owner}${storageId}` }, async (context) => {
    await freeVolume(call.core, { host: call.host, volumeId: id }, context.work);
    context.log(`Removed volume '${id}'`);
  });
  const delay = call.optional('delay');
  if (delay === undefined) return upid;
  const ended = await call.core.tasks.wait(upid, (Number(delay) * 1000) / call.state.speed);
  if (!ended) return upid;
  const result = call.core.tasks.find(upid)?.status ?? '';
  if (result === 'OK' || result.startsWith('WARNINGS')) return null;
  throw serverError(result);
}

function parseSizeKib(text: string): number {
  const factor = text.endsWith('G') ? 2 ** 20 : 2 ** 10;
  return /^\d+$/.test(text) ? Number(text) : Number.parseInt(text, 10) * factor;
}

/** A given name must match the format on file storages, and the VM id on all others. */
function requireUsableName(
  call: Call,
  storage: Storage,
  at: { readonly vmId: number; readonly format: string },
): void {
  const name = call.text('filename');
  if (name === '') return;
  if (storage.path === undefined) {
    if (name.startsWith(`vm-${at.vmId}-`)) return;
    throw serverError(`illegal name '${name}' - should be 'vm-${at.vmId}-*'`);
  }
  const { format } = parseVolumeName(storage, `${at.vmId}/${name}`);
  if (format !== at.format) {
    throw serverError(
      `illegal name '${name}' - wrong extension for format ('${format} != '${at.format}')`,
    );
  }
  if (volumesOn(storage, call.host).has(`${at.vmId}/${name}`)) {
    throw serverError(`disk image '${volumePath(storage, `${at.vmId}/${name}`)}' already exists`);
  }
}

async function createVolume(call: Call): Promise<string> {
  const bytes = parseSizeKib(call.text('size')) * 1024;
  const format = call.optional('format');
  const named = /\.(raw|qcow2|vmdk)$/.exec(call.text('filename'))?.[1];
  if (named !== undefined && format !== undefined && named !== format) {
    throw parameterError({ format: `different storage formats (${format} != ${named})` });
  }
  const storage = requireActiveStorage(call.state, call.text('storage'), call.host);
  const volumeFormat = format ?? named ?? 'raw';
  const vmId = call.integer('vmid');
  requireUsableName(call, storage, { vmId, format: volumeFormat });
  const name = call.text('filename');
  const volume = { vmId, size: bytes, format: volumeFormat, ...(name === '' ? {} : { name }) };
  const location = { storage: call.text('storage'), host: call.host };
  const work = (ms: number) => call.state.clock.sleep(ms / call.state.speed);
  return await allocateVolume(call.core, location, { volume, work });
}

export const STORAGE_HANDLERS: Handlers = {
  'GET /nodes/{node}/storage': listOnNode,
  'GET /nodes/{node}/storage/{storage}': (call) =>
    [
      'content',
      'download-url',
      'file-restore',
      'import-metadata',
      ...(call.state.version === '8.4' ? [] : ['oci-registry-pull']),
      'prunebackups',
      'rrd',
      'rrddata',
      'status',
      'upload',
    ].map((subdir) => ({ subdir })),
  'GET /nodes/{node}/storage/{storage}/status': storageStatus,
  'GET /nodes/{node}/storage/{storage}/content': listContent,
  'POST /nodes/{node}/storage/{storage}/content': createVolume,
  'GET /nodes/{node}/storage/{storage}/content/{volume}': getVolume,
  'PUT /nodes/{node}/storage/{storage}/content/{volume}': updateVolume,
  'DELETE /nodes/{node}/storage/{storage}/content/{volume}': removeVolume,
  ...STORAGE_DEFINITION_HANDLERS,
  ...TRANSFER_HANDLERS,
};
