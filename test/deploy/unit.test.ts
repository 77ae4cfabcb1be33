// SPDX-License-Identifier: Apache-2.0
// systemd-analyze accepts the unit of the guide. Skipped where it is not installed.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readDocument } from '../docs/documents.ts';
import { aFolder } from '../support/pvescaler.ts';

const verify = (unit: string) => {
  const file = join(aFolder(), 'pvescaler.service');
  writeFileSync(file, unit);
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], {
    encoding: 'utf8',
  });
  return { status, problems: stderr.split('\n').filter((line) => line.includes('pvescaler')) };
};

const isInstalled = spawnSync('systemd-analyze', ['--version']).status === 0;

it.skipIf(!isInstalled)('systemd-analyze accepts the unit of the guide, and no typo in it', () => {
  const blocks = readDocument('docs/guides/serve.md').blocks;
  const [unit] = blocks.filter(({ language }) => language === 'ini');
  const text = (unit?.text ?? '').replace('/usr/local/bin/pvescaler', process.execPath);
  expect(verify(text)).toEqual({ status: 0, problems: [] });
  const wrong = verify(text.replace('StateDirectory', 'StateFolder'));
  expect(wrong.problems.join('\n')).toContain('Unknown key');
});
