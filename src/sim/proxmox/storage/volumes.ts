// SPDX-License-Identifier: Apache-2.0
// Volume ids and volumes: parsing, lookup, names and free space. Durations and locks are in `allocation.ts`.
import { serverError } from '../api-error.ts';
import type { ClusterState } from '../state/cluster-state.ts';
import type { Storage, Volume } from '../state/model.ts';

export interface VolumeId {
  readonly storage: string;
  readonly name: string;
}

export interface ParsedVolumeName {
  readonly content: string;
  readonly format: string;
  readonly vmId: number | undefined;
  readonly base: string | undefined;
}

const VOLUME_ID = /^([a-z][a-z0-9\-_.]*[a-z0-9]):(.+)$/i;

export function splitVolumeId(text: string): VolumeId | undefined {
  const match = VOLUME_ID.exec(text);
  return match === null ? undefined : { storage: match[1] ?? '', name: match[2] ?? '' };
}

export function parseVolumeId(text: string): VolumeId {
  const id = splitVolumeId(text);
  if (id === undefined) throw serverError(`unable to parse volume ID '${text}'`);
  return id;
}

export function requireStorage(state: ClusterState, id: string): Storage {
  const storage = state.storages.get(id);
  if (storage === undefined) throw serverError(`storage '${id}' does not exist`);
  return storage;
}

export function isStorageAvailable(storage: Storage, host: string): boolean {
  return storage.enabled && (storage.hosts === undefined || storage.hosts.includes(host));
}

/** Returns the storage; throws unless it is enabled and available on the host. */
export function requireEnabledStorage(state: ClusterState, id: string, host: string): Storage {
  const storage = requireStorage(state, id);
  if (!storage.enabled) throw serverError(`storage '${id}' is disabled`);
  if (!isStorageAvailable(storage, host)) {
    throw serverError(`storage '${id}' is not available on node '${host}'`);
  }
  return storage;
}

/** Network storages: Proxmox probes the server before it mounts. */
const PROBED_BEFORE_MOUNT = new Set([
  'nfs',
  'cifs',
  'glusterfs',
  'iscsi',
  'iscsidirect',
  'pbs',
  'esxi',
]);

/** Also throws when the storage is not mounted. */
export function requireActiveStorage(state: ClusterState, id: string, host: string): Storage {
  const storage = requireEnabledStorage(state, id, host);
  if (storage.active) return storage;
  if (PROBED_BEFORE_MOUNT.has(storage.type)) throw serverError(`storage '${id}' is not online`);
  throw serverError(
    storage.path === undefined
      ? `no such volume group '${id}'`
      : `unable to activate storage '${id}' - directory '${storage.path}' does not exist or is unreachable`,
  );
}

const FILE_DIRS: Readonly<Record<string, string>> = {
  iso: 'template/iso',
  vztmpl: 'template/cache',
  import: 'import',
  snippets: 'snippets',
  backup: 'dump',
};

const NOUNS: Readonly<Record<string, string>> = {
  lvmthin: 'lvm',
  lvm: 'lvm',
  zfspool: 'zfs',
  rbd: 'rbd',
};

function parseContentFileName(content: string, name: string): ParsedVolumeName {
  const extension = /\.([a-z0-9]+)$/i.exec(name)?.[1] ?? 'raw';
  const fixed: Readonly<Record<string, string>> = { iso: 'iso', snippets: 'snippet' };
  const vmId = content === 'backup' ? /-(\d+)-/.exec(name)?.[1] : undefined;
  return {
    content,
    format: fixed[content] ?? extension,
    vmId: vmId === undefined ? undefined : Number(vmId),
    base: undefined,
  };
}

/** Valid file names by content type. */
const FILE_NAMES: Readonly<Record<string, RegExp>> = {
  iso: /\.(?:iso|img)$/i,
  vztmpl: /\.tar(?:\.(?:gz|xz|zst|bz2))?$/i,
  import: /^[a-zA-Z0-9.+=_-]+\.(?:ova|ovf|qcow2|raw|vmdk)$/,
  snippets: /./,
  backup: /\.(?:tgz|(?:tar|vma)(?:\.(?:gz|lzo|zst|bz2))?)$/,
};

function parseFileVolumeName(name: string): ParsedVolumeName | undefined {
  const file = /^(iso|vztmpl|import|snippets|backup)\/([^/]+)$/.exec(name);
  if (file !== null) {
    const [, content = '', short = ''] = file;
    return FILE_NAMES[content]?.test(short) === true
      ? parseContentFileName(content, name)
      : undefined;
  }
  const image = /^(?:(\d+\/[^\s/]+)\/)?(\d+)\/([^\s/]+)$/.exec(name);
  if (image === null) return undefined;
  const [, base, vmId, short = ''] = image;
  const format = /\.(raw|qcow2|vmdk|subvol)$/.exec(short)?.[1];
  if (format === undefined) throw serverError(`unable to parse volume filename '${short}'`);
  return { content: 'images', format, vmId: Number(vmId), base };
}

function parseBlockVolumeName(name: string): ParsedVolumeName | undefined {
  const match = /^(?:(base-\d+-[^/]+)\/)?((?:vm|base|subvol)-(\d+)-[^/\s]+)$/.exec(name);
  if (match === null) return undefined;
  const content = (match[2] ?? '').startsWith('subvol') ? 'rootdir' : 'images';
  return { content, format: 'raw', vmId: Number(match[3]), base: match[1] };
}

const LVM_NAME = /^[a-z0-9][a-z0-9\-_.]*[a-z0-9]$/i;

/** Content type, format, owner and base volume that a volume name encodes. */
export function parseVolumeName(storage: Storage, name: string): ParsedVolumeName {
  if (storage.type.startsWith('lvm') && !LVM_NAME.test(name)) {
    throw serverError(`lvm name '${name}' contains illegal characters`);
  }
  const kind = storage.path === undefined ? parseBlockVolumeName(name) : parseFileVolumeName(name);
  if (kind !== undefined) return kind;
  const noun = NOUNS[storage.type] ?? 'directory';
  throw serverError(`unable to parse ${noun} volume name '${name}'`);
}

/** Path of the file or device, as the API and error messages show it. */
export function volumePath(storage: Storage, name: string): string {
  if (storage.path === undefined) {
    const last = name.split('/').at(-1) ?? name;
    return storage.type === 'rbd' ? `rbd:${storage.id}/${last}` : `/dev/${storage.id}/${last}`;
  }
  const [first = '', ...rest] = name.split('/');
  const dir = FILE_DIRS[first];
  if (dir !== undefined) return `${storage.path}/${dir}/${rest.join('/')}`;
  return `${storage.path}/images/${name.split('/').slice(-2).join('/')}`;
}

/** The volume id of a file or device. */
export function findVolumeByPath(
  state: ClusterState,
  host: string,
  path: string,
): string | undefined {
  for (const storage of state.storages.values()) {
    for (const name of volumesOn(storage, host).keys()) {
      if (volumePath(storage, name) === path) return `${storage.id}:${name}`;
    }
  }
  return undefined;
}

export function volumesOn(storage: Storage, host: string): Map<string, Volume> {
  const key = storage.shared ? '*' : host;
  const known = storage.volumes.get(key);
  if (known !== undefined) return known;
  const created = new Map<string, Volume>();
  storage.volumes.set(key, created);
  return created;
}

export function findVolume(state: ClusterState, host: string, id: string): Volume | undefined {
  const parsed = splitVolumeId(id);
  if (parsed === undefined) return undefined;
  const storage = state.storages.get(parsed.storage);
  return storage === undefined ? undefined : volumesOn(storage, host).get(parsed.name);
}

export function usedBytes(storage: Storage, host: string): number {
  return Math.min(writtenBytes(storage, host), storage.size);
}

function writtenBytes(storage: Storage, host: string): number {
  let sum = storage.used;
  for (const volume of volumesOn(storage, host).values()) sum += occupiedBytes(storage, volume);
  return sum;
}

/** Whether `more` bytes beyond what its volumes need do not fit on a file storage. */
export function isFileStorageFull(storage: Storage, host: string, more = 0): boolean {
  const usable = storage.size - (storage.reserved ?? 0);
  return storage.path !== undefined && writtenBytes(storage, host) + more > usable;
}

/** Thin storages only count written data; for a disk from an image, at most 2 GiB. */
function occupiedBytes(storage: Storage, volume: Volume): number {
  if (volume.content !== 'images') return volume.size;
  const isThick = storage.type === 'lvm' || storage.type === 'zfspool';
  if (isThick) return volume.size;
  return volume.image === undefined ? 0 : Math.min(volume.size, 2 * 2 ** 30);
}

export interface NewVolume {
  readonly vmId: number;
  readonly size: number;
  readonly format?: string | undefined;
  /** `cloudinit` instead of `disk-N`. */
  readonly suffix?: string;
  /** The complete file or volume name; absent = generated. */
  readonly name?: string;
  readonly base?: string | undefined;
  readonly image?: string | undefined;
  readonly guestState?: unknown;
  readonly everBooted?: boolean;
}

/** Storage types that number disks per format: a raw and a qcow2 disk 0 can coexist. */
const COUNTED_BY_FORMAT = new Set(['nfs', 'cifs', 'glusterfs']);

function nextFreeName(
  storage: Storage,
  volumes: ReadonlyMap<string, Volume>,
  requested: {
    readonly vmId: number;
    readonly suffix: string | undefined;
    readonly extension: string;
  },
): string {
  const { vmId, suffix, extension } = requested;
  const counted = COUNTED_BY_FORMAT.has(storage.type) ? extension : '';
  if (suffix !== undefined) return `vm-${vmId}-${suffix}${extension}`;
  const taken = new Set<number>();
  for (const name of volumes.keys()) {
    const last = name.split('/').at(-1) ?? '';
    const match = /^(?:vm|base)-(\d+)-disk-(\d+)/.exec(last);
    if (match === null || Number(match[1]) !== vmId || !last.endsWith(counted)) continue;
    taken.add(Number(match[2]));
  }
  let index = 0;
  while (taken.has(index)) index += 1;
  return `vm-${vmId}-disk-${index}${extension}`;
}

function requireSpace(
  at: { readonly storage: Storage; readonly host: string },
  requested: { readonly name: string; readonly size: number },
): void {
  const { storage, host } = at;
  const isThick = storage.type === 'lvm' || storage.type === 'zfspool';
  const usable = storage.size - (storage.reserved ?? 0);
  if (!isThick || usedBytes(storage, host) + requested.size <= usable) return;
  throw serverError(
    storage.type === 'lvm'
      ? `lvcreate '${storage.id}/${requested.name}' error:   Volume group "${storage.id}" has insufficient free space`
      : `zfs error: cannot create '${storage.id}/${requested.name}': out of space`,
  );
}

/** Creates a volume and returns its id. */
export function addVolume(
  state: ClusterState,
  at: { readonly storage: Storage; readonly host: string },
  requested: NewVolume,
): string {
  const { storage, host } = at;
  const volumes = volumesOn(storage, host);
  const isFile = storage.path !== undefined;
  const format = isFile ? (requested.format ?? 'raw') : 'raw';
  const extension = isFile ? `.${format}` : '';
  const file =
    requested.name ??
    nextFreeName(storage, volumes, { vmId: requested.vmId, suffix: requested.suffix, extension });
  requireSpace(at, { name: file, size: requested.size });
  const own = isFile ? `${requested.vmId}/${file}` : file;
  const name = requested.base === undefined ? own : `${requested.base}/${own}`;
  volumes.set(name, {
    name,
    content: 'images',
    format,
    size: requested.size,
    virtualSize: undefined,
    vmId: requested.vmId,
    createdAt: state.nowSeconds(),
    base: requested.base,
    image: requested.image,
    guestState: requested.guestState,
    everBooted: requested.everBooted ?? false,
  });
  return `${storage.id}:${name}`;
}

/** Names of the linked clones of a base volume. */
export function findLinkedClones(storage: Storage, host: string, name: string): readonly string[] {
  const last = name
    .split('/')
    .slice(storage.path === undefined ? -1 : -2)
    .join('/');
  return [...volumesOn(storage, host).values()]
    .filter((volume) => volume.base === last)
    .map((volume) => volume.name);
}
