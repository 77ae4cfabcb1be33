// SPDX-License-Identifier: Apache-2.0
// The first face as a user runs it: processes, sockets, a database file, a simulated site.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, it, onTestFinished } from 'vitest';
import { aFolder, pvescaler, root } from '../support/pvescaler.ts';

const SHA256 = '5fa5b05e5ec239858c4531485d6023b0896448c2df7c63b34f8dae6ea6051a44';
const CLUSTER = `
version: "9.2"
name: sim
hosts:
  - { name: pve1, cpus: 16, memory: 64GiB, address: 192.0.2.11, bridges: [{ name: vmbr0, dhcp: 10.10.0.0/16 }] }
  - { name: pve2, cpus: 16, memory: 64GiB, address: 192.0.2.12, bridges: [{ name: vmbr0, dhcp: 10.10.0.0/16 }] }
storages:
  - { name: local, type: dir, content: [iso, import], size: 200GiB }
  - { name: local-lvm, type: lvmthin, content: [images], size: 900GiB }
  - { name: seeds, type: nfs, content: [iso], size: 20GiB }
users:
  - id: scaler@pve
    tokens: [{ id: sim, secret: 00000000-0000-4000-8000-000000000001, privsep: false }]
acl: [{ path: /, role: Administrator, user: scaler@pve }]
urls:
  - { url: https://images.example/noble-with-agent.img, size: 600MiB, virtualSize: 3584MiB, checksums: { sha256: ${SHA256} } }
`;

function config(folder: string, url: string, fingerprint: string): string {
  return `
apiVersion: pvescaler.dev/v1alpha1
state: { path: ${folder}/state/state.db }
proxmox:
  lab:
    endpoints: ["${url}"]
    tls: { fingerprints: ["${fingerprint}"] }
    token: { id: "scaler@pve!sim", secretFile: ${folder}/token }
    vmIds: 1250-1300
    storage: { images: local, seeds: seeds, disks: local-lvm }
images:
  noble: { url: https://images.example/noble-with-agent.img, checksum: "sha256:${SHA256}" }
pools:
  - name: workers
    from: { image: noble }
    join: none
    size: { cpu: 2, memory: 2Gi, disk: 20Gi }
    limits: { min: 0, max: 5 }
`;
}

function start(args: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, [join(root, 'bin/pvescaler.js'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

async function aLab() {
  const folder = aFolder();
  writeFileSync(join(folder, 'cluster.yaml'), CLUSTER);
  writeFileSync(join(folder, 'token'), '00000000-0000-4000-8000-000000000001\n', { mode: 0o600 });
  const sim = start(
    `sim proxmox --cluster ${folder}/cluster.yaml --listen 127.0.0.1:0 --tls --speed 200 --json`.split(
      ' ',
    ),
  );
  const [line] = (await once(createInterface(sim.stdout!), 'line')) as [string];
  const { url, fingerprint } = JSON.parse(line) as { url: string; fingerprint: string };
  const path = join(folder, 'config.yaml');
  writeFileSync(path, config(folder, new URL(url).origin, fingerprint));
  const run = (...args: string[]) => pvescaler([...args, '--config', path]);
  return { folder, path, run };
}

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

it('goes on after a kill, and after the database was lost', async () => {
  const { folder, path, run } = await aLab();
  for (const pause of [400, 900]) {
    const child = start(['pool', 'scale', 'workers', '--to', '2', '--config', path]);
    await new Promise((resolve) => setTimeout(resolve, pause));
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
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
