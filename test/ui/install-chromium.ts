// SPDX-License-Identifier: Apache-2.0
// Installs Debian's Chromium unless a browser is named by CHROMIUM or found.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/** Of the browser. Only ends a failed test: the machine may be loaded. */
export const LIMIT_MS = 120_000;
export const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';

export function setup(): void {
  if (existsSync(CHROMIUM)) return;
  console.error('installing chromium with apt-get; about a minute');
  for (const args of [
    ['update', '-qq'],
    ['install', '-y', '-qq', '--no-install-recommends', 'chromium'],
  ]) {
    // A mirror may be busy for a moment.
    const all = ['-o', 'Acquire::Retries=5', ...args];
    const { status, stderr } = spawnSync('apt-get', all, { encoding: 'utf8' });
    if (status !== 0)
      throw new Error(`apt-get ${args[0]} failed: ${stderr}. Set CHROMIUM to a browser.`);
  }
}
