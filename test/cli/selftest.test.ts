// SPDX-License-Identifier: Apache-2.0
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { aLab, start } from '../support/lab.ts';

interface Result {
  readonly isPassed: boolean;
  readonly seconds: Readonly<Record<string, number>>;
}

interface Vm {
  readonly vmid: number;
}

it('selftest creates a machine, removes it, and reports the seconds per phase', async () => {
  const lab = await aLab();
  const { out, err, exitCode } = lab.run('selftest', '--pool', 'workers', '-o', 'json');
  expect(exitCode, err).toBe(0);
  const { isPassed, seconds } = JSON.parse(out) as Result;
  expect(isPassed).toBe(true);
  expect(Object.keys(seconds)).toEqual([
    'requested',
    'placed',
    'creating',
    'configuring',
    'starting',
    'booting',
    'ready',
    'deleting',
    'total',
  ]);
  expect(seconds['total']).toBeGreaterThan(0);
  const { data } = await lab.request('GET', '/cluster/resources?type=vm');
  expect(data).toEqual([]);
});

it('selftest that is interrupted leaves a machine that the next command removes', async () => {
  const lab = await aLab();
  const child = start(['selftest', '--pool', 'workers', '--config', lab.path]);
  const vms = async () => (await lab.request('GET', '/nodes/pve1/qemu')).data as readonly Vm[];
  const others = async () => (await lab.request('GET', '/nodes/pve2/qemu')).data as readonly Vm[];
  while ((await vms()).length + (await others()).length === 0) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  child.kill('SIGINT');
  await once(child, 'exit');
  const { exitCode, err } = lab.run('pool', 'scale', 'workers', '--to', '0');
  expect(exitCode, err).toBe(0);
  expect([...(await vms()), ...(await others())]).toEqual([]);
});
