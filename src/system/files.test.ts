// SPDX-License-Identifier: Apache-2.0
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemFiles } from './files.ts';

describe('systemFiles', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'pvescaler-files-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const modeOf = (path: string) => statSync(path).mode & 0o777;

  it('creates folders and files that only their owner can read', async () => {
    const path = join(folder, 'a/b/file');
    expect(await systemFiles.write(path, 'text', { overwrite: false })).toBe('written');
    expect([join(folder, 'a'), join(folder, 'a/b'), path].map(modeOf)).toEqual([
      0o700, 0o700, 0o600,
    ]);
    expect(await systemFiles.write(path, 'other', { overwrite: false })).toBe('exists-already');
    expect(readFileSync(path, 'utf8')).toBe('text');
  });

  it('restricts the permissions of a file that it overwrites', async () => {
    const path = join(folder, 'key');
    writeFileSync(path, 'a longer old text');
    chmodSync(path, 0o644);
    await systemFiles.write(path, 'new', { overwrite: true });
    expect(readFileSync(path, 'utf8')).toBe('new');
    expect(modeOf(path)).toBe(0o600);
  });

  it('rejects a folder below a file, and one below /proc', async () => {
    writeFileSync(join(folder, 'file'), '');
    for (const path of [join(folder, 'file'), join(folder, 'file/below')]) {
      await expect(systemFiles.createFolder(path)).rejects.toMatchObject({ code: 'ENOTDIR' });
    }
    await expect(systemFiles.createFolder('/proc/pvescaler/state')).rejects.toMatchObject({
      code: 'ENOENT',
    });
  });
});
