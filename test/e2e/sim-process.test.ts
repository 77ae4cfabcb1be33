// SPDX-License-Identifier: Apache-2.0
// `pvescaler sim proxmox` as a process of its own: its guests, too, join the cluster that their user-data names.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { root } from '../support/pvescaler.ts';
import { type ControlPlane, Program, startControlPlane, waitUntil } from './controlplane/index.ts';
import { nodes, readiness } from './support/kube-objects.ts';
import { POOL, startSite } from './support/simulated-site.ts';

let plane: ControlPlane;
beforeAll(async () => {
  plane = await startControlPlane();
});
afterAll(() => plane.stop());

const SHA256 = '5fa5b05e5ec239858c4531485d6023b0896448c2df7c63b34f8dae6ea6051a44';
const CLUSTER = `
version: "9.2"
name: sim
hosts:
  - { name: pve1, cpus: 16, memory: 64GiB, address: 192.0.2.11, bridges: [{ name: vmbr0, dhcp: 10.10.0.0/16 }] }
storages:
  - { name: local, type: dir, content: [iso, import], size: 200GiB }
  - { name: local-lvm, type: lvmthin, content: [images], size: 900GiB }
  - { name: shared, type: nfs, content: [iso], size: 20GiB }
users:
  - id: scaler@pve
    tokens: [{ id: sim, secret: 00000000-0000-4000-8000-000000000001, privsep: false }]
acl: [{ path: /, role: Administrator, user: scaler@pve }]
urls:
  - { url: https://images.example/noble-with-agent.img, size: 600MiB, virtualSize: 3584MiB, checksums: { sha256: ${SHA256} } }
`;

async function aSimulator() {
  const cluster = join(plane.folder, 'cluster.yaml');
  writeFileSync(cluster, CLUSTER);
  const words = `sim proxmox --cluster ${cluster} --listen 127.0.0.1:0 --tls --speed 200 --json`;
  const program = new Program({
    name: 'sim proxmox',
    path: process.execPath,
    args: [join(root, 'bin/pvescaler.js'), ...words.split(' ')],
    logFile: join(plane.folder, 'sim.log'),
  });
  onTestFinished(() => program.kill());
  const line = await waitUntil('its address', () => {
    program.demandRunning();
    return /^\{.*\}$/m.exec(program.log())?.[0];
  });
  return JSON.parse(line) as { readonly url: string; readonly fingerprint: string };
}

it('guests of a simulator in another process become nodes', async () => {
  const site = await startSite({ plane, distribution: 'k3s', proxmox: await aSimulator() });
  onTestFinished(() => site.close());
  expect(await site.cli('pool', 'scale', POOL, '--to', '2')).toMatchObject({ exitCode: 0 });
  const joined = await nodes(plane.api);
  expect(joined.map(readiness)).toEqual(['True', 'True']);
  expect(joined.map(({ spec }) => spec.providerID).sort()).toEqual([
    'proxmox://lab/1250',
    'proxmox://lab/1251',
  ]);
  expect(await site.cli('pool', 'scale', POOL, '--to', '0')).toMatchObject({ exitCode: 0 });
  await waitUntil('no Node is left', async () => (await nodes(plane.api)).length === 0);
});
