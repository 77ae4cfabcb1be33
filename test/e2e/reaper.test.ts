// SPDX-License-Identifier: Apache-2.0
// The programs that a suite started end with the test process, however it ends.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { waitUntil } from './controlplane/index.ts';

const STARTER = `
import { removeFolderOnExit } from ${JSON.stringify(join(import.meta.dirname, 'controlplane/reaper.ts'))};
import { Program } from ${JSON.stringify(join(import.meta.dirname, 'controlplane/program.ts'))};
const folder = process.argv[1];
removeFolderOnExit(folder);
const start = () => new Program({ name: 'sleep', path: '/bin/sleep', args: ['600'], logFile: folder + '/log' });
const [running, killed] = [start(), start()];
await killed.kill();
console.log(running.pid);
setInterval(() => undefined, 1000);
`;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

it.each(['SIGKILL', 'SIGINT', 'SIGTERM'] as const)(
  'a program ends and its folder is removed after %s of the test process',
  async (signal) => {
    const folder = mkdtempSync(join(tmpdir(), 'pvescaler-reaper-'));
    const args = ['--input-type=module', '-e', STARTER, folder];
    const starter = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = (await once(starter.stdout, 'data')) as [Buffer];
    const pid = Number(line.toString());
    expect(isAlive(pid)).toBe(true);
    starter.kill(signal);
    await waitUntil('the program has ended', () => !isAlive(pid) && !existsSync(folder));
  },
);
