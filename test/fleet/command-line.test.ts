// SPDX-License-Identifier: Apache-2.0
// The first face as a user runs it: processes, sockets, a database file, a simulated site.
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import { aLab, start } from '../support/lab.ts';

interface Shown {
  readonly id: string;
  readonly phase: string;
  readonly placement: { readonly name: string; readonly vmId: number };
}

/** `machines --watch --json`: a line for each change, and for nothing else. */
function watch(path: string) {
  const child = start(['machines', '--watch', '--json', '--config', path]);
  const lines: string[] = [];
  const reader = createInterface(child.stdout!).on('line', (line) => lines.push(line));
  const until = async (isThere: (shown: readonly Shown[]) => boolean) => {
    while (!lines.some((line) => isThere(JSON.parse(line) as Shown[]))) await once(reader, 'line');
  };
  return { lines, until };
}

it('scales a pool up and down, shows it, and finds nothing orphaned', async () => {
  const { path, run } = await aLab();
  const up = run('pool', 'scale', 'workers', '--to', '3');
  expect(up).toMatchObject({ exitCode: 0, out: 'pool workers has 3 machines\n' });
  expect(up.err).toMatch(/workers-[0-9a-f]{8}: ready/);
  const machines = JSON.parse(run('machines', '--json').out) as Shown[];
  expect(machines.map(({ phase }) => phase)).toEqual(['ready', 'ready', 'ready']);
  const [first] = machines;
  expect(run('machine', 'show', first!.placement.name).out).toContain('MachineReady');
  expect(run('pools').out).toMatch(/workers\s+3\s+3\s+0\s+0\s+0-5/);
  const watched = watch(path);
  await watched.until((shown) => shown.length === 3);
  expect(run('machine', 'delete', first!.id.slice(0, 8))).toMatchObject({
    exitCode: 0,
    out: '1 machines are gone\n',
  });
  await watched.until((shown) => shown.length === 2);
  expect(watched.lines.some((line) => line.includes('"deleting"'))).toBe(true);
  for (const [at, line] of watched.lines.entries()) expect(line).not.toBe(watched.lines[at - 1]);
  expect(run('pool', 'scale', 'workers', '--to', '9')).toMatchObject({ exitCode: 6 });
  expect(run('pool', 'scale', 'nobody', '--to', '1')).toMatchObject({ exitCode: 4 });
  expect(run('pool', 'scale', 'workers', '--to', '0').out).toBe('pool workers has 0 machines\n');
  expect(run('orphans')).toMatchObject({ exitCode: 0, out: 'nothing is orphaned\n' });
}, 120_000);

/** As many lines of progress as told, then SIGKILL. */
async function killAfter(steps: number, path: string): Promise<void> {
  const child = start(['pool', 'scale', 'workers', '--to', '2', '--config', path]);
  const ended = once(child, 'close');
  let told = 0;
  createInterface(child.stderr!).on('line', () => {
    told += 1;
    if (told === steps) child.kill('SIGKILL');
  });
  const [, signal] = (await ended) as [number | null, string | null];
  expect(signal).toBe('SIGKILL');
}

it('goes on after a kill, and after the database was lost', async () => {
  const { folder, path, run } = await aLab();
  for (const steps of [1, 2]) await killAfter(steps, path);
  expect(run('pool', 'scale', 'workers', '--to', '2').out).toBe('pool workers has 2 machines\n');
  for (const end of ['', '-wal', '-shm']) {
    rmSync(join(folder, `state/state.db${end}`), { force: true });
  }
  expect(run('orphans')).toMatchObject({ exitCode: 4 });
  expect(run('orphans', '--fix')).toMatchObject({ exitCode: 0, out: 'nothing is orphaned\n' });
  expect(run('pool', 'scale', 'workers', '--to', '2').out).toBe('pool workers has 2 machines\n');
  expect((JSON.parse(run('machines', '--json').out) as Shown[]).length).toBe(2);
  expect(run('pool', 'scale', 'workers', '--to', '0').out).toBe('pool workers has 0 machines\n');
  expect(run('orphans').out).toBe('nothing is orphaned\n');
}, 120_000);
