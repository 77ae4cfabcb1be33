// SPDX-License-Identifier: Apache-2.0
// `pvescaler sim proxmox` as a separate process: its guests join the cluster that their user-data names.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { root } from '../support/pvescaler.ts';
import { type ControlPlane, Program, startControlPlane, waitUntil } from './controlplane/index.ts';
import { listNodes, readReadiness } from './support/kube-objects.ts';
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

async function startSimulator() {
  const cluster = join(plane.folder, 'cluster.yaml');
  writeFileSync(cluster, CLUSTER);
  const commandLine = `sim proxmox --cluster ${cluster} --listen 127.0.0.1:0 --tls --speed 200 --json`;
  const program = new Program({
    name: 'sim proxmox',
    path: process.execPath,
    args: [join(root, 'bin/pvescaler.js'), ...commandLine.split(' ')],
    logFile: join(plane.folder, 'sim.log'),
  });
  onTestFinished(() => program.kill());
  const line = await waitUntil('the address of the simulator', () => {
    program.assertRunning();
    return /^\{.*\}$/m.exec(program.log())?.[0];
  });
  return JSON.parse(line) as { readonly url: string; readonly fingerprint: string };
}

it('guests of a simulator in another process join as nodes', async () => {
  const site = await startSite({ plane, distribution: 'k3s', proxmox: await startSimulator() });
  onTestFinished(() => site.close());
  expect(await site.runCli('pool', 'scale', POOL, '--to', '2')).toMatchObject({ exitCode: 0 });
  const joined = await listNodes(plane.api);
  expect(joined.map(readReadiness)).toEqual(['True', 'True']);
  expect(joined.map(({ spec }) => spec.providerID).sort()).toEqual([
    'proxmox://lab/1250',
    'proxmox://lab/1251',
  ]);
  expect(await site.runCli('pool', 'scale', POOL, '--to', '0')).toMatchObject({ exitCode: 0 });
  await waitUntil('all Nodes are deleted', async () => (await listNodes(plane.api)).length === 0);
});
