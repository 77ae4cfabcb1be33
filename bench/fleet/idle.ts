// SPDX-License-Identifier: Apache-2.0
// Measures the memory of `pvescaler serve` with an idle fleet, without Kubernetes: the built program as a separate
// process, over real sockets, in real time.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createProxmoxSim, makeCertificate, serveProxmoxSim } from '../../src/sim/proxmox/index.ts';
import { systemClock, systemRandom } from '../../src/system/index.ts';
import { benchCluster } from './site.ts';

const root = join(import.meta.dirname, '../..');
const TOKEN = '00000000-0000-4000-8000-000000000001';

const MACHINES = 3;
/** The machines are ready within seconds; afterwards the fleet is idle. */
const SIM_SPEED = 100;
const MAX_WAIT_MS = 120_000;

export async function measureIdle(seconds: number): Promise<number> {
  const sim = createProxmoxSim({
    cluster: benchCluster({ hosts: 3 }),
    clock: systemClock,
    random: systemRandom,
    speed: SIM_SPEED,
  });
  const certificate = makeCertificate(['localhost', '127.0.0.1']);
  const { cert, key, fingerprint } = certificate;
  const served = await serveProxmoxSim(sim, { listen: '127.0.0.1:0', tls: { cert, key } });
  const folder = mkdtempSync(join(tmpdir(), 'pvescaler-idle-'));
  try {
    writeFileSync(join(folder, 'token'), `${TOKEN}\n`, { mode: 0o600 });
    writeFileSync(join(folder, 'config.yaml'), configText(folder, served.url, fingerprint));
    return await rssMiB(folder, seconds);
  } finally {
    await served.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function configText(folder: string, url: string, fingerprint: string): string {
  return `
apiVersion: pvescaler.dev/v1alpha1
state: { path: ${folder}/state/state.db }
http: { health: "127.0.0.1:0", dashboard: off }
proxmox:
  lab:
    endpoints: ["${url}"]
    tls: { fingerprints: ["${fingerprint}"] }
    token: { id: "scaler@pve!sim", secretFile: ${folder}/token }
    vmIds: 1250-1300
    storage: { images: local, seeds: shared, disks: local-lvm }
pools:
  - name: workers
    from: { netboot: {} }
    join: none
    size: { cpu: 2, memory: 2Gi, disk: 20Gi }
    limits: { min: ${MACHINES}, max: 5 }
`;
}

async function rssMiB(folder: string, seconds: number): Promise<number> {
  const program = join(root, 'bin/pvescaler.js');
  const args = ['serve', '--config', join(folder, 'config.yaml')];
  const child = spawn(process.execPath, [program, ...args], {
    env: { PATH: process.env['PATH'], HOME: '/nonexistent' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'close');
  const atRest = Promise.withResolvers<void>();
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.split('"MachineReady"').length > MACHINES) atRest.resolve();
    });
  }
  try {
    await Promise.race([atRest.promise, sleep(MAX_WAIT_MS, undefined, { ref: false }), ended]);
    if (output.split('"MachineReady"').length <= MACHINES)
      throw new Error(`the machines did not become ready: ${output}`);
    await Promise.race([sleep(seconds * 1_000), ended]);
    if (child.exitCode !== null) throw new Error(`serve exited: ${output}`);
    return residentMiB(child.pid ?? 0);
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
}

function residentMiB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) / 1_024;
}
