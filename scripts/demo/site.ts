// SPDX-License-Identifier: Apache-2.0
// The site of the demo: a simulated Proxmox VE, a simulated Kubernetes cluster, and `pvescaler serve` as a process.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type KubernetesSim, startKubernetesSim } from '../../src/sim/kubernetes/index.ts';
import {
  createProxmoxSim,
  defaultCluster,
  type ProxmoxSim,
  serveProxmoxSim,
} from '../../src/sim/proxmox/index.ts';
import { openHttpTransport, systemClock, systemRandom } from '../../src/system/index.ts';

const GIB = 2 ** 30;
const SHA256 = '5fa5b05e5ec239858c4531485d6023b0896448c2df7c63b34f8dae6ea6051a44';
const IMAGE_URL = 'https://images.example/noble-with-agent.img';
const SECRET = '00000000-0000-4000-8000-000000000001';
const LOG_TAIL_LINES = 30;
const ROOT = join(import.meta.dirname, '../..');

export interface DemoSite {
  readonly proxmox: ProxmoxSim;
  readonly kubernetes: KubernetesSim;
  readonly dashboardUrl: string;
  readonly healthUrl: string;
  /** Of actions in the dashboard. */
  readonly dashboardToken: string;
  readonly kubeconfigPath: string;
  /** The last lines of the daemon's log. */
  readLogTail(): string;
  /** Rejects when the daemon ends although it was not stopped. */
  readonly failed: Promise<never>;
  close(): Promise<void>;
}

interface ConfigFields {
  readonly folder: string;
  readonly proxmoxUrl: string;
  readonly fingerprint: string;
  readonly server: string;
  readonly ports: Ports;
}

interface Ports {
  readonly health: number;
  readonly dashboard: number;
}

function formatConfig({ folder, proxmoxUrl, fingerprint, server, ports }: ConfigFields): string {
  const pool = (name: string, size: string) => `
  - name: ${name}
    from: { image: noble }
    join: k3s
    size: ${size}
    limits: { min: 0, max: 8 }
    scaleUp: { stabilizationWindow: 500ms }
    scaleDown: { unneededTime: 4s, delayAfterAdd: 2s, delayAfterFailure: 2s, maxConcurrent: 4 }
    deletion: { shutdownTimeout: 30s }`;
  return `apiVersion: pvescaler.dev/v1alpha1
mode: standalone
cluster: { name: demo, kubeconfig: ${folder}/kubeconfig }
state: { path: ${folder}/state/state.db }
http:
  health: 127.0.0.1:${ports.health}
  dashboard: 127.0.0.1:${ports.dashboard}
  dashboardTokenFile: ${folder}/dashboard-token
pricing: { vcpuHour: 0.01, memoryGiBHour: 0.002 }
intervals: { reconcile: 5s, scan: 1s }
proxmox:
  lab:
    endpoints: ["${proxmoxUrl}"]
    tls: { fingerprints: ["${fingerprint}"] }
    token: { id: "scaler@pve!sim", secretFile: ${folder}/token }
    vmIds: 1250-1300
    storage: { images: local, seeds: shared, disks: local-lvm }
images:
  noble: { url: ${IMAGE_URL}, checksum: "sha256:${SHA256}" }
join:
  k3s: { server: "${server}", version: v1.34.4+k3s1, token: auto }
pools:${pool('small', '{ cpu: 2, memory: 4Gi, disk: 20Gi }')}${pool('large', '{ cpu: 4, memory: 8Gi, disk: 40Gi }')}
`;
}

function createProxmox(speed: number): ProxmoxSim {
  return createProxmoxSim({
    cluster: {
      ...defaultCluster(3),
      urls: [
        {
          url: IMAGE_URL,
          size: 600 * 2 ** 20,
          virtualSize: 3 * GIB,
          checksums: { sha256: SHA256 },
        },
      ],
    },
    clock: systemClock,
    random: systemRandom,
    speed,
    connect: ({ caPem, client }) =>
      openHttpTransport({
        tls:
          caPem === undefined
            ? { kind: 'insecure' }
            : { kind: 'verify', caPem, ...(client !== undefined && { client }) },
        unreachable: 'KUBERNETES_UNREACHABLE',
      }),
  });
}

/** `speed`: factor by which the simulated Proxmox VE and its guests are faster than real ones. */
export async function startDemoSite(speed: number): Promise<DemoSite> {
  const folder = await mkdtemp(join(tmpdir(), 'pvescaler-demo-'));
  const cluster = await startKubernetesSim({
    clock: systemClock,
    random: systemRandom,
    listen: '127.0.0.1:0',
    fakeNodes: 0,
  });
  const proxmox = createProxmox(speed);
  const served = await serveProxmoxSim(proxmox, { listen: '127.0.0.1:0', tls: true });
  await mkdir(join(folder, 'state'));
  await writeFile(join(folder, 'kubeconfig'), cluster.kubeconfig, { mode: 0o600 });
  await writeFile(join(folder, 'token'), `${SECRET}\n`, { mode: 0o600 });
  const dashboardToken = randomBytes(12).toString('hex');
  await writeFile(join(folder, 'dashboard-token'), `${dashboardToken}\n`, { mode: 0o600 });
  const health = await findFreePort(8080);
  const ports = { health, dashboard: await findFreePort(health + 1) };
  await writeFile(
    join(folder, 'config.yaml'),
    formatConfig({
      folder,
      proxmoxUrl: new URL(served.url).origin,
      fingerprint: served.fingerprint ?? '',
      server: cluster.url,
      ports,
    }),
  );
  const daemon = startDaemon(folder);
  return {
    proxmox,
    kubernetes: cluster.sim,
    dashboardUrl: `http://127.0.0.1:${ports.dashboard}`,
    healthUrl: `http://127.0.0.1:${ports.health}`,
    dashboardToken,
    kubeconfigPath: join(folder, 'kubeconfig'),
    readLogTail: () => daemon.readLogTail(),
    failed: daemon.failed,
    close: async () => {
      await daemon.stop();
      await cluster.close();
      await served.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The first port from here on that nothing listens on. */
async function findFreePort(first: number): Promise<number> {
  for (let port = first; port < first + 100; port += 1) {
    const server = createServer().listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
      return port;
    } catch {
      // In use.
    } finally {
      server.close();
    }
  }
  throw new Error(`all ports from ${first} to ${first + 99} are in use`);
}

interface Daemon {
  readonly failed: Promise<never>;
  readLogTail(): string;
  stop(): Promise<void>;
}

function startDaemon(folder: string): Daemon {
  const logFile = join(folder, 'serve.log');
  const log = createWriteStream(logFile);
  const child: ChildProcess = spawn(
    process.execPath,
    [join(ROOT, 'bin/pvescaler.js'), 'serve', '--config', join(folder, 'config.yaml')],
    { stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env['PATH'], HOME: '/nonexistent' } },
  );
  child.stdout?.pipe(log, { end: false });
  child.stderr?.pipe(log, { end: false });
  const ended = once(child, 'exit');
  let isStopped = false;
  const failed = (async () => {
    const [code] = (await ended) as [number | null];
    if (isStopped) return new Promise<never>(() => undefined);
    throw new Error(`pvescaler serve ended with code ${code}`);
  })();
  // Reported by whatever waits for it; without a waiter it is not unhandled.
  failed.catch(() => undefined);
  return {
    failed,
    readLogTail: () =>
      readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n'),
    stop: async () => {
      isStopped = true;
      child.kill('SIGTERM');
      await ended;
      log.end();
    },
  };
}
