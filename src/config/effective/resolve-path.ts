// SPDX-License-Identifier: Apache-2.0
// Makes config paths absolute: `~/` is the home folder, other paths are relative to the config file,
// independent of the working directory of the process.
import { posix } from 'node:path';

export interface Folders {
  readonly home: string;
  /** Folder of the config file; the working directory when there is no file. */
  readonly base: string;
}

export function resolvePath(path: string, folders: Folders): string {
  if (path === '~') return folders.home;
  if (path.startsWith('~/')) return posix.join(folders.home, path.slice(2));
  return posix.isAbsolute(path) ? path : posix.join(folders.base, path);
}
