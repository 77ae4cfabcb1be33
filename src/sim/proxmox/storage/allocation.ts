// SPDX-License-Identifier: Apache-2.0
// Allocation and removal of volumes: they take time and hold the storage's lock.
import { errorText, serverError } from '../api-error.ts';
import type { Core } from '../core.ts';
import type { Storage } from '../state/model.ts';
import { SIMULATED_DURATIONS_MS, SIMULATED_TIMEOUTS_MS } from '../tasks/durations.ts';
import {
  addVolume,
  findLinkedClones,
  isFileStorageFull,
  type NewVolume,
  parseVolumeId,
  parseVolumeName,
  requireActiveStorage,
  volumePath,
  volumesOn,
} from './volumes.ts';

export interface StorageLocation {
  readonly storage: string;
  readonly host: string;
}

type Work = (ms: number) => Promise<void>;

/** Serialises allocation, linked clones and removal per storage; copying runs without this lock. */
export function withStorageLock<T>(
  core: Core,
  location: { readonly storage: Storage; readonly host: string },
  work: () => Promise<T>,
): Promise<T> {
  const { storage, host } = location;
  const timeoutMs = SIMULATED_TIMEOUTS_MS.storageLock / core.state.speed;
  if (storage.shared) {
    const onTimeout = () =>
      serverError(`cfs-lock 'storage-${storage.id}' error: got lock request timeout`);
    return core.locks.withLock({ name: `storage-${storage.id}`, timeoutMs, onTimeout }, work);
  }
  const file = `/var/lock/pve-manager/pve-storage-${storage.id}`;
  const onTimeout = () => serverError(`can't lock file '${file}' - got timeout`);
  return core.locks.withLock({ name: `${host}:${file}`, timeoutMs, onTimeout }, work);
}

export async function allocateVolume(
  core: Core,
  location: StorageLocation,
  request: { readonly volume: NewVolume; readonly work: Work },
): Promise<string> {
  const storage = requireActiveStorage(core.state, location.storage, location.host);
  return await withStorageLock(core, { storage, host: location.host }, async () => {
    await request.work(SIMULATED_DURATIONS_MS.allocate);
    return addVolume(core.state, { storage, host: location.host }, request.volume);
  });
}

interface DataCopy {
  readonly from: string;
  /** Volume id. */
  readonly to: string;
  readonly host: string;
  /** Duration at speed 1. */
  readonly ms: number;
  /** Begin of the error text. */
  readonly failure: string;
}

/** Copies data into an allocated volume. A full storage is noticed only now, and only the log says so. */
export async function copyData(
  core: Core,
  copy: DataCopy,
  task: { readonly work: Work; readonly log: (line: string) => void },
): Promise<void> {
  await task.work(copy.ms);
  const { storage: id, name } = parseVolumeId(copy.to);
  const storage = requireActiveStorage(core.state, id, copy.host);
  if (!isFileStorageFull(storage, copy.host)) return;
  task.log('qemu-img: error while writing at byte 2097152: No space left on device');
  const command = `/usr/bin/qemu-img convert -p -n -O raw ${copy.from} ${volumePath(storage, name)}`;
  throw serverError(`${copy.failure}: command '${command}' failed: exit code 1`);
}

/** Removes a volume; a missing one is no error. */
export async function freeVolume(
  core: Core,
  at: { readonly host: string; readonly volumeId: string },
  work: Work,
): Promise<void> {
  const { storage: id, name } = parseVolumeId(at.volumeId);
  const storage = requireActiveStorage(core.state, id, at.host);
  parseVolumeName(storage, name);
  await withStorageLock(core, { storage, host: at.host }, async () => {
    const [clone] = findLinkedClones(storage, at.host, name);
    if (clone !== undefined) {
      throw serverError(`base volume '${name}' is still in use by linked clones`);
    }
    await work(SIMULATED_DURATIONS_MS.free);
    volumesOn(storage, at.host).delete(name);
  });
}

/** Clean-up after a failure: logs errors instead of throwing. */
export async function freeVolumes(
  core: Core,
  at: { readonly host: string; readonly volumes: readonly string[] },
  log: (line: string) => void,
): Promise<void> {
  for (const volumeId of at.volumes) {
    try {
      await freeVolume(core, { host: at.host, volumeId }, () => Promise.resolve());
    } catch (error) {
      log(errorText(error));
    }
  }
}
