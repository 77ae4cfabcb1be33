// SPDX-License-Identifier: Apache-2.0
// The independent programs: Debian's cloud-init, isoinfo and xorriso from its packages, pycdlib in a separate
// directory. Installs only what is missing, and logs it.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

export interface Ran {
  readonly status: number;
  readonly out: Buffer;
  readonly text: string;
}

export function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Ran {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    env: { ...process.env, ...env },
    maxBuffer: 2 ** 28,
  });
  if (error !== undefined) return { status: 127, out: Buffer.alloc(0), text: error.message };
  return { status: status ?? 1, out: stdout, text: stdout.toString() + stderr.toString() };
}

export class CannotRun extends Error {}

/** Debian's own interpreter: another one in the PATH would not find Debian's Python packages. */
export const PYTHON = '/usr/bin/python3';

const PACKAGES: Readonly<Record<string, string>> = {
  'cloud-init': '/usr/bin/cloud-init',
  xorriso: '/usr/bin/xorriso',
  genisoimage: '/usr/bin/isoinfo',
  systemd: '/usr/bin/systemd-analyze',
  'python3-pip': '/usr/bin/pip3',
};

export function ensureTools(cache: string, say: (text: string) => void): string {
  const pycdlib = join(cache, 'pycdlib');
  const missing = Object.keys(PACKAGES).filter((name) => !existsSync(PACKAGES[name] ?? ''));
  if (missing.length > 0) installPackages(missing, say);
  if (existsSync(join(pycdlib, 'pycdlib'))) return pycdlib;
  say(`installing pycdlib into ${pycdlib}`);
  const args = ['-m', 'pip', 'install', '--quiet', '--target', pycdlib, 'pycdlib==1.14.0'];
  const { status, text } = run(PYTHON, args);
  if (status !== 0) throw new CannotRun(`pip could not install pycdlib:\n${text}`);
  return pycdlib;
}

function installPackages(names: readonly string[], say: (text: string) => void): void {
  const list = names.join(', ');
  if (run('apt-get', ['--version']).status !== 0) {
    throw new CannotRun(`missing: ${list}; this tier needs Debian or Ubuntu (there is no apt-get)`);
  }
  if (process.getuid?.() !== 0) {
    throw new CannotRun(`missing: ${list}; run as root, or: apt-get install ${names.join(' ')}`);
  }
  say(`installing Debian packages: ${list}`);
  const quiet = { DEBIAN_FRONTEND: 'noninteractive' };
  for (const args of [
    ['update', '-qq'],
    ['install', '-y', '-qq', '--no-install-recommends', ...names],
  ]) {
    // A mirror may be busy for a moment.
    const { status, text } = run('apt-get', ['-o', 'Acquire::Retries=5', ...args], quiet);
    if (status !== 0) throw new CannotRun(`apt-get ${args[0]} failed:\n${text}`);
  }
}
