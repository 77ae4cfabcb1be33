// SPDX-License-Identifier: Apache-2.0
// Checks the units of a seed with systemd's own verifier, in a directory laid out like the guest's root.
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { Tally } from './tally.ts';
import { run } from './tools.ts';

export interface GuestRootFile {
  readonly path: string;
  readonly content: string;
  readonly permissions?: string;
}

const OURS = '/etc/systemd/system/';
const SYSTEM = '/usr/lib/systemd/system';
/** Programs that the units start, and files that the join would have created. */
const PROGRAMS = ['/sbin/modprobe', '/usr/local/bin/k3s', '/usr/local/bin/rke2'];

export interface UnitsCheck {
  readonly name: string;
  readonly folder: string;
  readonly tally: Tally;
}

export function checkUnits(
  { name, folder, tally }: UnitsCheck,
  files: readonly GuestRootFile[],
): void {
  const units = files
    .map(({ path }) => path)
    .filter((path) => path.startsWith(OURS) && /^[^/]+\.service$/.test(path.slice(OURS.length)))
    .map((path) => path.slice(OURS.length));
  if (units.length === 0) return;
  const root = join(folder, 'root');
  const programs = PROGRAMS.map((path) => ({ path, content: '', permissions: '0755' }));
  for (const file of [...files, ...programs]) put(root, file);
  copyTargets(root);
  const { status, text } = run('/usr/bin/systemd-analyze', ['verify', `--root=${root}`, ...units]);
  // systemd only warns about an unknown key, so any output is a failure.
  const isRight = status === 0 && text.trim() === '';
  tally.check(`${name}: systemd verifies ${units.join(', ')}`, isRight, () => text);
  rmSync(root, { recursive: true });
}

function put(root: string, { path, content, permissions = '0644' }: GuestRootFile): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
  chmodSync(join(root, path), Number.parseInt(permissions, 8));
}

function copyTargets(root: string): void {
  mkdirSync(join(root, SYSTEM), { recursive: true });
  const names = readdirSync(SYSTEM).filter((name) => /\.(target|slice)$/.test(name));
  for (const name of names.filter((each) => statSync(join(SYSTEM, each)).isFile())) {
    copyFileSync(join(SYSTEM, name), join(root, SYSTEM, name));
  }
}
