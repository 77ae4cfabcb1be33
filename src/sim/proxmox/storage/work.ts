// SPDX-License-Identifier: Apache-2.0
// Storage work that takes time: under the storage's lock, with the texts of a lock that was not granted.
import { failure, textOf } from '../api-error.ts';
import type { Core } from '../core.ts';
import { SIMULATED_DURATIONS, SIMULATED_TIMEOUTS } from '../tasks/durations.ts';
import type { Storage } from '../world/model.ts';
import {
  activeStorage,
  addVolume,
  clonesOf,
  kindOf,
  type NewVolume,
  parseVolumeId,
  volumesOn,
} from './volumes.ts';

export interface Place {
  readonly storage: string;
  readonly host: string;
}

type Work = (ms: number) => Promise<void>;

/** Allocation, linked clones and removal happen one at a time per storage; copying does not. */
export function withStorageLock<T>(
  core: Core,
  place: { readonly storage: Storage; readonly host: string },
  work: () => Promise<T>,
): Promise<T> {
  const { storage, host } = place;
  const timeoutMs = SIMULATED_TIMEOUTS.storageLock / core.world.speed;
  if (storage.shared) {
    const onTimeout = () =>
      failure(`cfs-lock 'storage-${storage.id}' error: got lock request timeout`);
    return core.locks.with({ name: `storage-${storage.id}`, timeoutMs, onTimeout }, work);
  }
  const file = `/var/lock/pve-manager/pve-storage-${storage.id}`;
  const onTimeout = () => failure(`can't lock file '${file}' - got timeout`);
  return core.locks.with({ name: `${host}:${file}`, timeoutMs, onTimeout }, work);
}

export async function allocate(
  core: Core,
  place: Place,
  order: { readonly volume: NewVolume; readonly work: Work },
): Promise<string> {
  const storage = activeStorage(core.world, place.storage, place.host);
  return await withStorageLock(core, { storage, host: place.host }, async () => {
    await order.work(SIMULATED_DURATIONS.allocate);
    return addVolume(core.world, { storage, host: place.host }, order.volume);
  });
}

/** Removes a volume; one that is not there is fine. */
export async function free(
  core: Core,
  at: { readonly host: string; readonly volumeId: string },
  work: Work,
): Promise<void> {
  const { storage: id, name } = parseVolumeId(at.volumeId);
  const storage = activeStorage(core.world, id, at.host);
  kindOf(storage, name);
  await withStorageLock(core, { storage, host: at.host }, async () => {
    const [clone] = clonesOf(storage, at.host, name);
    if (clone !== undefined) {
      throw failure(`base volume '${name}' is still in use by linked clones`);
    }
    await work(SIMULATED_DURATIONS.free);
    volumesOn(storage, at.host).delete(name);
  });
}

/** Clean-up after a failure: reports instead of failing again. */
export async function freeAll(
  core: Core,
  at: { readonly host: string; readonly volumes: readonly string[] },
  log: (line: string) => void,
): Promise<void> {
  for (const volumeId of at.volumes) {
    try {
      await free(core, { host: at.host, volumeId }, () => Promise.resolve());
    } catch (error) {
      log(textOf(error));
    }
  }
}
