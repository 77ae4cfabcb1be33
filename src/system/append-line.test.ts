// SPDX-License-Identifier: Apache-2.0
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { systemFiles } from './files.ts';

it('appends a line of its own to a file whose last line has no end', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'append-line-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'known_hosts');
  writeFileSync(path, 'pve1 ssh-ed25519 AAAA');
  await systemFiles.appendLine(path, 'pve2 ssh-ed25519 BBBB');
  await systemFiles.appendLine(path, 'pve3 ssh-ed25519 CCCC');
  expect(readFileSync(path, 'utf8')).toBe(
    'pve1 ssh-ed25519 AAAA\npve2 ssh-ed25519 BBBB\npve3 ssh-ed25519 CCCC\n',
  );
});
