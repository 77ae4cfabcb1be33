// SPDX-License-Identifier: Apache-2.0
import { access, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** The files of this machine. New files are readable by their owner only: some contain keys. */
export const systemFiles = {
  /** Undefined when the file does not exist. */
  read(path: string): Promise<string | undefined> {
    return readFile(path, 'utf8').catch(returnOn('ENOENT', undefined));
  },

  /** Creates missing folders. */
  async write(
    path: string,
    text: string,
    { overwrite }: { readonly overwrite: boolean },
  ): Promise<'written' | 'exists-already'> {
    await mkdir(dirname(path), { recursive: true });
    return writeFile(path, text, { flag: overwrite ? 'w' : 'wx', mode: 0o600 }).then(
      () => 'written',
      returnOn('EEXIST', 'exists-already'),
    );
  },

  exists(path: string): Promise<boolean> {
    return access(path).then(
      () => true,
      () => false,
    );
  },

  async readWithMode(path: string): Promise<{ readonly text: string; readonly mode: number }> {
    const [text, { mode }] = await Promise.all([readFile(path, 'utf8'), stat(path)]);
    return { text, mode };
  },

  async createFolder(path: string): Promise<void> {
    await mkdir(path, { recursive: true });
  },
};

/** Returns `value` for errors with this code, and rethrows the others. */
function returnOn<T>(code: string, value: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === code) return value;
    throw error;
  };
}
