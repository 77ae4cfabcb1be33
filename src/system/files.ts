// SPDX-License-Identifier: Apache-2.0

import type { FileHandle } from 'node:fs/promises';
import { access, appendFile, mkdir, open, readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** The files of this machine. New files are readable by their owner only: some contain keys. */
export const systemFiles = {
  /** Undefined when the file does not exist. */
  read(path: string): Promise<string | undefined> {
    return readFile(path, 'utf8').catch(returnOn('ENOENT', undefined));
  },

  /** Creates missing folders. A file that is overwritten gets the permissions of a new one before its text. */
  async write(
    path: string,
    text: string,
    { overwrite }: { readonly overwrite: boolean },
  ): Promise<'written' | 'exists-already'> {
    await createFolder(dirname(path));
    const file = await open(path, overwrite ? 'w' : 'wx', FILE_MODE).catch(
      returnOn('EEXIST', undefined),
    );
    if (file === undefined) return 'exists-already';
    try {
      if (overwrite) await restrict(file);
      await file.writeFile(text);
    } finally {
      await file.close();
    }
    return 'written';
  },

  /** Creates a missing file and its folders. */
  async appendLine(path: string, line: string): Promise<void> {
    await createFolder(dirname(path));
    const before = await readFile(path, 'utf8').catch(() => '');
    // The last line of a file that a person edited may lack its end.
    const end = before === '' || before.endsWith('\n') ? '' : '\n';
    await appendFile(path, `${end}${line}\n`, { mode: FILE_MODE });
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

  createFolder,
};

const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;

/** Devices, pipes and files of other users keep their permissions. */
async function restrict(file: FileHandle): Promise<void> {
  if ((await file.stat()).isFile()) await file.chmod(FILE_MODE).catch(returnOn('EPERM', undefined));
}

/** With its parents. Node's recursive mkdir never returns below /proc. */
async function createFolder(path: string): Promise<void> {
  const found = await stat(path).catch(returnOn('ENOENT', undefined));
  if (found?.isDirectory() === true) return;
  if (found !== undefined) {
    throw Object.assign(new Error(`${path} is not a folder`), { code: 'ENOTDIR' });
  }
  await createFolder(dirname(path));
  await mkdir(path, { mode: FOLDER_MODE }).catch(returnOn('EEXIST', undefined));
}

/** Returns `value` for errors with this code, and rethrows the others. */
function returnOn<T>(code: string, value: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === code) return value;
    throw error;
  };
}
