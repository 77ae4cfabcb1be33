// SPDX-License-Identifier: Apache-2.0
import { statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

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
