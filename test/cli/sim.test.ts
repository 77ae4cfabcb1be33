// SPDX-License-Identifier: Apache-2.0
// `pvescaler sim proxmox` as a user runs it: a process, sockets, signals, a state file.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Hypervisor } from '../../src/ports/hypervisor.ts';
import { createProxmoxHypervisor, TaskFollower } from '../../src/proxmox/index.ts';
import { openHttpTransport, systemClock, systemRandom } from '../../src/system/index.ts';
import { aFolder, pvescaler, root } from '../support/pvescaler.ts';

interface Started {
  readonly process: ChildProcess;
  readonly url: string;
  readonly fingerprint?: string;
  readonly hosts: readonly string[];
}

async function startSim(args: readonly string[]): Promise<Started> {
  const child = spawn(
    process.execPath,
    [
      join(root, 'bin/pvescaler.js'),
      'sim',
      'proxmox',
      '--listen',
      '127.0.0.1:0',
      '--speed',
      '1000',
      '--json',
      ...args,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  onTestFinished(() => void child.kill('SIGKILL'));
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
  return { process: child, ...(JSON.parse(line) as Omit<Started, 'process'>) };
}

async function stop({ process }: Started): Promise<number | null> {
  process.kill('SIGTERM');
  const [code] = (await once(process, 'exit')) as [number | null];
  return code;
}

async function connect({ url, fingerprint }: Started): Promise<Hypervisor> {
  const tls =
    fingerprint === undefined
      ? {}
      : { tls: { kind: 'fingerprints', sha256: [fingerprint] } as const };
  const hypervisor = createProxmoxHypervisor({
    region: 'lab',
    endpoints: [url],
    credentials: {
      kind: 'token',
      id: 'scaler@pve!sim',
      secret: () => '00000000-0000-4000-8000-000000000001',
    },
    transport: await openHttpTransport(tls),
    clock: systemClock,
    random: systemRandom,
  });
  onTestFinished(() => hypervisor.close());
  return hypervisor;
}

async function makeVm(hypervisor: Hypervisor, vmId: number): Promise<void> {
  const task = await hypervisor.createVm({
    vmId,
    host: 'pve1',
    identity: {
      name: `vm-${vmId}`,
      description: 'kept',
      tags: ['b', 'a'],
      smbiosUuid: systemRandom.uuid(),
    },
    hardware: {
      cpus: 1,
      memoryBytes: 2 ** 30,
      balloonBytes: 0,
      networks: [],
      bootFrom: 'disk',
      options: {},
    },
    disk: { storage: 'local-lvm', bytes: 2 ** 30 },
  });
  const end = await new TaskFollower(hypervisor, systemClock).follow(task, { timeoutMs: 60_000 });
  expect(end).toMatchObject({ succeeded: true });
}

describe('pvescaler sim proxmox', () => {
  it('serves the API over HTTPS with a pinned certificate, and stops on SIGTERM', async () => {
    const sim = await startSim(['--tls', '--hosts', '2', '--version', '8.4']);
    expect(sim).toMatchObject({ hosts: ['pve1', 'pve2'] });
    const view = await (await connect(sim)).view();
    expect(view.version).toMatch(/^8\.4/);
    expect(view.hosts.map(({ name, online }) => [name, online])).toEqual([
      ['pve1', true],
      ['pve2', true],
    ]);
    expect(await stop(sim)).toBe(0);
  });

  it('fails a client that pins another certificate', async () => {
    const sim = await startSim(['--tls']);
    const hypervisor = await connect({ ...sim, fingerprint: 'AA'.repeat(32) });
    await expect(hypervisor.view()).rejects.toMatchObject({ code: 'TLS_NOT_TRUSTED' });
  });

  it('continues from its state file', async () => {
    const state = join(aFolder(), 'sim.json');
    const first = await startSim(['--state', state]);
    await makeVm(await connect(first), 1250);
    expect(await stop(first)).toBe(0);
    expect(existsSync(state)).toBe(true);
    const second = await startSim(['--state', state]);
    const config = await (await connect(second)).vmConfig({ vmId: 1250, host: 'pve1' });
    expect(config).toMatchObject({ name: 'vm-1250', description: 'kept', tags: ['a', 'b'] });
  });

  it('lists all problems of a cluster description', () => {
    const file = join(aFolder(), 'site.yaml');
    writeFileSync(file, 'hosts:\n  - name: pve1\n    cpu: 4\nstorages: nothing\n');
    const { exitCode, err } = pvescaler(['sim', 'proxmox', '--cluster', file]);
    expect(exitCode).toBe(3);
    expect(err).toMatch(new RegExp(`${file}:3:5: .*cpu`));
    expect(err).toMatch(new RegExp(`${file}:4:11: `));
  });

  it('names the address that is in use', async () => {
    const { url } = await startSim([]);
    const { exitCode, err } = pvescaler(['sim', 'proxmox', '--listen', new URL(url).host]);
    expect(exitCode).toBe(2);
    expect(err).toMatch(/cannot listen on 127\.0\.0\.1:\d+/);
  });

  it.each([
    [['--hosts', '0'], /--hosts takes a whole number/],
    [['--speed', 'fast'], /--speed takes a number/],
    [['--version', '7.4'], /Allowed choices are 8\.4, 9\.2/],
    [['--hosts', '2', '--cluster', 'x.yaml'], /cannot be used with/],
    [['--cluster', '/nonexistent.yaml'], /does not exist/],
  ])('refuses %j', (args, message) => {
    const { exitCode, err } = pvescaler(['sim', 'proxmox', ...args]);
    expect(err).toMatch(message);
    expect(exitCode).not.toBe(0);
  });
});
