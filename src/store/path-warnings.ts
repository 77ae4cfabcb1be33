// SPDX-License-Identifier: Apache-2.0
import { statfs } from 'node:fs/promises';
import { dirname, resolve, sep } from 'node:path';

/** Emptied at a reboot, or by a nightly cleaner. */
const PASSING_FOLDERS = ['/tmp', '/var/tmp', '/dev/shm', '/run', '/var/run'];

/** Magic numbers of statfs(2). Their locks, or their shared memory, do not reach another machine. */
const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x517b, 'SMB'],
  [0x01021997, '9p'],
  [0x00c36400, 'Ceph'],
  [0x5346414f, 'AFS'],
]);

/** Sentences about a place that works now and loses the database later. */
export function storePathWarnings(path: string, tempFolders: readonly string[]): readonly string[] {
  const absolute = resolve(path);
  const inside = [...PASSING_FOLDERS, ...tempFolders.map((folder) => resolve(folder))].find(
    (folder) => absolute.startsWith(`${folder}${sep}`),
  );
  if (inside === undefined) return [];
  return [
    `the database ${absolute} lies in ${inside}, which is emptied at a reboot or by a cleaner; set state.path to a lasting place such as /var/lib/pvescaler/state.db`,
  ];
}

/** Asks the kernel; silent where it cannot tell. */
export async function fileSystemWarnings(path: string): Promise<readonly string[]> {
  try {
    const { type } = await statfs(dirname(resolve(path)));
    return networkWarnings(resolve(path), type);
  } catch {
    return [];
  }
}

export function networkWarnings(path: string, fileSystemType: number): readonly string[] {
  const name = NETWORK_FILE_SYSTEMS.get(fileSystemType);
  return name === undefined
    ? []
    : [
        `the database ${path} lies on a network file system (${name}); SQLite's locks are not safe there when two machines open it: put state.path on a local disk`,
      ];
}
