// SPDX-License-Identifier: Apache-2.0
// The site of the demo: a simulated Proxmox VE, a simulated Kubernetes cluster, `pvescaler serve` as a process, and its
// dashboard with the demo's own section.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { listen } from '../../src/http/index.ts';
import { type KubernetesSim, startKubernetesSim } from '../../src/sim/kubernetes/index.ts';
import {
  createProxmoxSim,
  defaultCluster,
  type ProxmoxSim,
  serveProxmoxSim,
} from '../../src/sim/proxmox/index.ts';
import { openHttpTransport, systemClock, systemRandom } from '../../src/system/index.ts';
import { type ConfigFields, type DemoMode, formatConfig } from './config.ts';
import { type Daemon, startDaemon } from './daemon.ts';
import { isAlive } from './launcher.ts';
import { createDemoPage, type DemoActions, type DemoPanel } from './page.ts';

const GIB = 2 ** 30;
const IMAGE = {
  url: 'https://images.example/noble-with-agent.img',
  sha256: '5fa5b05e5ec239858c4531485d6023b0896448c2df7c63b34f8dae6ea6051a44',
};
const SECRET = '00000000-0000-4000-8000-000000000001';
const ROOT = join(import.meta.dirname, '../..');
const FOLDER_PREFIX = 'pvescaler-demo-';
const MAX_ATTEMPTS = 10;
/** Of the guests' leases, which are renewed every 10 s: shorter than in Kubernetes, so that a person sees it. */
const NODE_GRACE_MS = 13_000;

export interface DemoSite {
  readonly proxmox: ProxmoxSim;
  readonly kubernetes: KubernetesSim;
  readonly dashboardUrl: string;
  readonly healthUrl: string;
  /** Of actions in the dashboard. */
  readonly dashboardToken: string;
  readonly kubeconfigPath: string;
  /** Of mode externalgrpc: where the Cluster Autoscaler connects, and the folder of its certificate. */
  readonly grpc: { readonly address: string; readonly certs: string };
  /** What the demo's section of the page shows. */
  showPanel(panel: DemoPanel): void;
  /** The last lines of the daemon's log. */
  readLogTail(): string;
  /** Rejects when the daemon ends although it was not stopped. */
  readonly failed: Promise<never>;
  close(): Promise<void>;
}

export interface DemoSiteOptions {
  /** Factor by which the simulated Proxmox VE and its guests are faster than real ones. */
  readonly speed: number;
  readonly mode?: DemoMode;
  /** Actions of the demo's section of the page; absent: it has none. */
  readonly actions?: (site: Pick<DemoSite, 'proxmox' | 'kubernetes'>) => DemoActions;
}

/** Guests of other people, so that the hosts are not empty. */
const OTHER_GUESTS = {
  vms: [
    { id: 100, host: 'pve1', config: { name: 'nas', memory: '8192', cores: '2' }, running: true },
    { id: 101, host: 'pve2', config: { name: 'db-1', memory: '16384', cores: '4' }, running: true },
    { id: 102, host: 'pve3', config: { name: 'win11', memory: '8192', cores: '4' } },
  ],
  containers: [
    { id: 110, host: 'pve1', name: 'dns', memory: GIB, cpus: 1, running: true },
    { id: 111, host: 'pve3', name: 'proxy', memory: 2 * GIB, cpus: 1, running: true },
  ],
};
export const OTHER_VM_IDS: readonly number[] = OTHER_GUESTS.vms.map(({ id }) => id);

function createProxmox(speed: number): ProxmoxSim {
  const { url, sha256 } = IMAGE;
  const image = { url, size: 600 * 2 ** 20, virtualSize: 3 * GIB, checksums: { sha256 } };
  return createProxmoxSim({
    cluster: { ...defaultCluster(3), ...OTHER_GUESTS, urls: [image] },
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

export async function startDemoSite(options: DemoSiteOptions): Promise<DemoSite> {
  await using started = new AsyncDisposableStack();
  const folder = await createFolder();
  started.defer(() => rm(folder, { recursive: true, force: true }));
  const cluster = await startKubernetesSim({
    clock: systemClock,
    random: systemRandom,
    listen: '127.0.0.1:0',
    fakeNodes: 0,
    controllers: { nodeMonitorGraceMs: NODE_GRACE_MS },
  });
  started.defer(() => cluster.close());
  const proxmox = createProxmox(options.speed);
  const served = await serveProxmoxSim(proxmox, { listen: '127.0.0.1:0', tls: true });
  started.defer(() => served.close());
  // Guests that still run would keep this process alive.
  started.defer(() => {
    for (const { id } of proxmox.inspect().vms) proxmox.guest(id)?.stop();
  });
  const { mode = 'standalone' } = options;
  const dashboardToken = await writeSecrets(folder, cluster.kubeconfig);
  if (mode === 'externalgrpc') createCertificates(join(folder, 'certs'));
  const fields = {
    mode,
    folder,
    proxmoxUrl: new URL(served.url).origin,
    fingerprint: served.fingerprint ?? '',
    server: cluster.url,
    image: IMAGE,
  };
  const { daemon, ports } = await startOnFreePorts(fields);
  started.defer(() => daemon.stop());
  let panel: DemoPanel = { title: '', text: '', look: '', isIdle: false };
  const page = createDemoPage({
    target: `http://127.0.0.1:${ports.dashboard}`,
    token: dashboardToken,
    panel: () => panel,
    actions: options.actions?.({ proxmox, kubernetes: cluster.sim }),
  });
  const dashboard = await listenFrom(ports.health + 1, page);
  started.defer(() => dashboard.close());
  const all = started.move();
  return {
    proxmox,
    kubernetes: cluster.sim,
    dashboardUrl: dashboard.url,
    healthUrl: `http://127.0.0.1:${ports.health}`,
    dashboardToken,
    kubeconfigPath: join(folder, 'kubeconfig'),
    grpc: { address: `localhost:${ports.grpc}`, certs: join(folder, 'certs') },
    showPanel: (next) => {
      panel = next;
    },
    readLogTail: () => daemon.readLogTail(),
    failed: daemon.failed,
    close: () => all.disposeAsync(),
  };
}

/** Named after this process. Folders of demos that were killed together with their daemon are removed. */
async function createFolder(): Promise<string> {
  for (const name of await readdir(tmpdir())) {
    const pid = new RegExp(`^${FOLDER_PREFIX}(\\d+)-`).exec(name)?.[1];
    if (pid === undefined || isAlive(Number(pid))) continue;
    await rm(join(tmpdir(), name), { recursive: true, force: true });
  }
  return mkdtemp(join(tmpdir(), `${FOLDER_PREFIX}${process.pid}-`));
}

/** Resolves with the token of the dashboard. */
async function writeSecrets(folder: string, kubeconfig: string): Promise<string> {
  await mkdir(join(folder, 'state'));
  const dashboardToken = randomBytes(12).toString('hex');
  const files = { kubeconfig, token: `${SECRET}\n`, 'dashboard-token': `${dashboardToken}\n` };
  for (const [name, text] of Object.entries(files))
    await writeFile(join(folder, name), text, { mode: 0o600 });
  return dashboardToken;
}

function createCertificates(folder: string): void {
  const args = [join(ROOT, 'bin/pvescaler.js'), 'certs', '--output', folder];
  // Its cache of compiled code would stay in the folder for temporary files.
  const env = { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' };
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env });
  if (status !== 0) throw new Error(`pvescaler certs failed: ${stderr}`);
}

/** Another process, such as a second demo, may take a port between the search and the start. Then the search is repeated. */
async function startOnFreePorts(fields: Omit<ConfigFields, 'ports'>) {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const ports = await findPorts();
    await writeFile(join(fields.folder, 'config.yaml'), formatConfig({ ...fields, ports }));
    const daemon = startDaemon(fields.folder);
    if (await daemon.waitForPorts().catch((error: unknown) => failStart(daemon, error)))
      return { daemon, ports };
    await daemon.stop();
  }
  throw new Error(`other processes took the ports of the demo ${MAX_ATTEMPTS} times`);
}

async function failStart(daemon: Daemon, cause: unknown): Promise<never> {
  await daemon.stop();
  throw new Error(`pvescaler serve does not start; its log:\n${daemon.readLogTail()}`, { cause });
}

/** 8080, or the next free one; the page of the demo gets one after it. The daemon's own dashboard is behind that page. */
async function findPorts() {
  const health = await findFreePort(8080);
  const dashboard = await findFreePort(health + 2);
  return { health, dashboard, grpc: await findFreePort(dashboard + 1) };
}

async function listenFrom(first: number, page: Parameters<typeof listen>[0]) {
  for (let port = await findFreePort(first); ; port = await findFreePort(port + 1)) {
    try {
      return await listen(page, { host: '127.0.0.1', port }, 'the dashboard');
    } catch (error) {
      if (port > first + MAX_ATTEMPTS) throw error;
    }
  }
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
