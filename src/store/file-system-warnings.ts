// SPDX-License-Identifier: Apache-2.0
import { statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/** Magic numbers of statfs(2) for file systems whose locks or shared memory do not work across machines. */
const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x517b, 'SMB'],
  [0x01021997, '9p'],
  [0x00c36400, 'Ceph'],
  [0x5346414f, 'AFS'],
]);

/** Returns no warning if the file system type is unknown. */
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
        `the database ${path} is on a network file system (${name}), where SQLite's locks are unsafe between machines: set state.path to a local disk`,
      ];
}
