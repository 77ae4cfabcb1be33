// SPDX-License-Identifier: Apache-2.0
// Paths of the config made absolute: `~/` is the home folder, anything else is relative to the config file,
// so that it means the same from wherever the program is started.
import { posix } from 'node:path';

export interface Folders {
  readonly home: string;
  /** Of the config file; the working folder when there is none. */
  readonly base: string;
}

export function resolvePath(path: string, folders: Folders): string {
  if (path === '~') return folders.home;
  if (path.startsWith('~/')) return posix.join(folders.home, path.slice(2));
  return posix.isAbsolute(path) ? path : posix.join(folders.base, path);
}
