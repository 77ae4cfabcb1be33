// SPDX-License-Identifier: Apache-2.0
// An installation on both simulators in which every check is ok, and what a test changes about it.
import { createHash, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Config, loadConfig, type RegionConfig } from '../../src/config/index.ts';
import { type CheckResult, type DoctorAdapters, examine } from '../../src/doctor/index.ts';
import { openClusterInspector } from '../../src/kubernetes/index.ts';
import { InvalidConfig } from '../../src/ports/errors.ts';
import { ScriptedTransport } from '../../src/ports/fakes/scripted-transport.ts';
import type { Transport } from '../../src/ports/transport.ts';
import { createProxmoxInspector, createProxmoxInspectorOverSsh } from '../../src/proxmox/index.ts';
import {
  createAuthority,
  KubernetesSim,
  startKubernetesSim,
} from '../../src/sim/kubernetes/index.ts';
import {
  type ClusterDescription,
  createProxmoxSim,
  makeCertificate,
  type ProxmoxSim,
  serveProxmoxSim,
  serveSsh,
} from '../../src/sim/proxmox/index.ts';
import { createSshKey } from '../../src/sim/ssh/ssh-server.ts';
import { openSshShell, trustKnownHosts } from '../../src/ssh/index.ts';
import {
  openHttpTransport,
  openSocket,
  systemClock,
  systemRandom,
  type TransportTls,
} from '../../src/system/index.ts';
import { SimTransport } from '../kubernetes/sim-transport.ts';
import { simPeer } from '../proxmox/simulated-region.ts';
import { aFolder } from '../support/pvescaler.ts';

const GIB = 2 ** 30;
const SECRET = '00000000-0000-4000-8000-000000000001';
const CERTIFICATE = makeCertificate(['127.0.0.1']);
const FINGERPRINT = new X509Certificate(CERTIFICATE.cert).fingerprint256;
const SHA256 = 'ab'.repeat(32);
const IMAGE_URL = 'https://images.example/noble.img';
const LIST_URL = 'https://images.example/SHA256SUMS';
const JOIN_TOKEN = { id: 'abcdef', secret: '0123456789abcdef' };
export const CLOSED_ENDPOINT = 'https://127.0.0.1:1';

const CLUSTER: ClusterDescription = {
  version: '9.2',
  name: 'sim',
  hosts: ['pve1', 'pve2'].map((name) => ({
    name,
    cpus: 16,
    memory: 64 * GIB,
    bridges: [{ name: 'vmbr0', vlanAware: true }],
  })),
  storages: [
    { name: 'local', type: 'dir', content: ['import'], size: 200 * GIB },
    { name: 'local-lvm', type: 'lvmthin', content: ['images'], size: 900 * GIB },
    { name: 'seeds', type: 'nfs', content: ['iso'], size: 20 * GIB },
    { name: 'ceph', type: 'rbd', content: ['images'], size: 900 * GIB },
  ],
  users: [{ id: 'scaler@pve', tokens: [{ id: 'sim', secret: SECRET, privsep: false }] }],
  acl: [{ path: '/', role: 'Administrator', user: 'scaler@pve' }],
  vms: [
    {
      id: 9_000,
      host: 'pve1',
      template: true,
      config: { name: 'base', scsi0: 'ceph:8', net0: 'virtio,bridge=vmbr0' },
    },
  ],
  urls: [{ url: IMAGE_URL, size: 600 * 2 ** 20, type: 'application/octet-stream' }],
};

/** The config as plain JSON; a test changes what it likes. */
function baseConfig({ endpoints, kubernetes }: Connections, kubeconfig: string) {
  const { url: server } = kubernetes;
  return {
    apiVersion: 'pvescaler.dev/v1alpha1',
    mode: 'externalgrpc',
    cluster: { kubeconfig },
    state: { path: '/var/lib/pvescaler/state.db' },
    grpc: { insecure: true },
    ssh: { publicKeyFiles: ['/keys/id.pub'] },
    proxmox: {
      lab: {
        endpoints,
        tls: { fingerprints: [FINGERPRINT], insecure: false },
        token: { id: 'scaler@pve!sim', secretEnv: 'TOKEN_SECRET' },
        hosts: { allow: [] as string[] },
        vmIds: '1250-1300',
        storage: { images: 'local', seeds: 'seeds', disks: 'local-lvm' },
      },
    },
    images: { noble: { url: IMAGE_URL, checksumUrl: LIST_URL } },
    templates: { base: { id: 9_000, image: 'noble' } },
    join: { k3s: { server, install: 'none', token: { secretEnv: 'JOIN_TOKEN' } } },
    pools: [
      {
        name: 'workers',
        from: { image: 'noble' },
        size: { cpu: 2, memory: '2Gi', disk: '20Gi' },
        limits: { max: 5 },
        network: {
          interfaces: [{ bridge: 'vmbr0', vlan: 20 }],
          ip: { pool: '10.0.0.10-10.0.0.19', prefix: 24, gateway: '10.0.0.1' },
        },
      },
      {
        name: 'clones',
        from: { template: 'base' },
        size: { cpu: 2, memory: '2Gi', disk: '20Gi' },
        limits: { max: 5 },
      },
    ],
  };
}

function overSsh({ proxmox, ...draft }: ConfigDraft, ssh: SshDraft) {
  const { endpoints: _, tls: __, token: ___, ...lab } = proxmox.lab;
  return { ...draft, proxmox: { lab: { ...lab, transport: { ssh } } } };
}

/** As under `transport.ssh`. */
interface SshDraft {
  hosts: readonly string[];
  user: string;
  privateKeyFile: string;
  hostKeys?: readonly string[];
  knownHosts?: string;
}

export type ConfigDraft = ReturnType<typeof baseConfig>;

export interface Changes {
  readonly cluster?: (cluster: ClusterDescription) => ClusterDescription;
  readonly version?: '8.4' | '9.2';
  readonly proxmox?: (sim: ProxmoxSim) => void;
  readonly config?: (draft: ConfigDraft) => void;
  readonly kubernetes?: (sim: KubernetesSim) => void;
  /** The pod of the Cluster Autoscaler. */
  readonly autoscaler?: { readonly image?: string; readonly args?: readonly string[] };
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly files?: Readonly<Record<string, string | undefined>>;
  readonly checksums?: string;
  readonly scope?: 'all' | 'proxmox';
  /** Over TLS on loopback. */
  readonly usesSockets?: boolean;
  /** Over SSH on loopback, with the changes of what the config has for it. */
  readonly ssh?: (draft: SshDraft) => void | Promise<void>;
}

export const AUTOSCALER_ARGS = [
  '--cloud-provider=externalgrpc',
  '--cloud-config=/etc/cloud-config.yaml',
  '--max-node-provision-time=20m',
  '--node-info-cache-expire-time=1h',
];

const SSH_KEY_PATH = '/keys/ssh';
const SSH_KEY = createSshKey('doctor');

/** How the installation reaches its servers. */
interface Connections {
  /** What the config has under `transport.ssh`. */
  readonly ssh?: SshDraft;
  readonly endpoints: readonly string[];
  readonly kubernetes: {
    readonly url: string;
    readonly caPem: string;
    readonly kubeconfig: string;
  };
  readonly openProxmox: (tls: TransportTls) => Promise<Transport>;
  readonly openKubernetes: (tls: TransportTls) => Promise<Transport>;
}

export async function examineInstallation(changes: Changes = {}): Promise<readonly CheckResult[]> {
  const connections = await (changes.usesSockets === true ? serve(changes) : connect(changes));
  const { kubernetes } = connections;
  const path = join(aFolder(), 'kubeconfig');
  writeFileSync(path, kubernetes.kubeconfig);
  const draft = baseConfig(connections, path);
  changes.config?.(draft);
  const caHash = createHash('sha256').update(kubernetes.caPem).digest('hex');
  const environment = {
    TOKEN_SECRET: SECRET,
    JOIN_TOKEN: `K10${caHash}::${JOIN_TOKEN.id}.${JOIN_TOKEN.secret}`,
    ...changes.environment,
  };
  const files: Readonly<Record<string, string | undefined>> = {
    '/keys/id.pub': 'ssh-ed25519 AAAA test\n',
    [SSH_KEY_PATH]: SSH_KEY.private,
    [path]: kubernetes.kubeconfig,
    ...changes.files,
  };
  const context = {
    clock: systemClock,
    environment,
    files: {
      read: (name: string) => Promise.resolve(files[name]),
      write: () => Promise.reject(new Error('doctor writes nothing')),
    },
    adapters: createAdapters({ environment, files }, connections, changes),
  };
  const { signal } = new AbortController();
  const { ssh } = connections;
  const config = parseConfig(ssh === undefined ? draft : overSsh(draft, ssh));
  return examine(context, config, { scope: changes.scope ?? 'all', signal });
}

function createProxmox({ cluster, version, proxmox, ssh }: Changes): ProxmoxSim {
  const sim = createProxmoxSim({
    // Each command over SSH loads Perl on the host.
    ...(ssh !== undefined && { speed: 20 }),
    cluster: cluster?.(CLUSTER) ?? CLUSTER,
    clock: systemClock,
    random: systemRandom,
    ...(version !== undefined && { version }),
  });
  proxmox?.(sim);
  return sim;
}

async function serve(changes: Changes): Promise<Connections> {
  const sim = createProxmox(changes);
  const served = await Promise.all(
    ['pve1', 'pve2'].map((host) =>
      serveProxmoxSim(sim, { listen: '127.0.0.1:0', tls: CERTIFICATE, host }),
    ),
  );
  onTestFinished(async () => void (await Promise.all(served.map((one) => one.close()))));
  const listen = '127.0.0.1:0';
  const kubernetes = await startKubernetesSim({
    clock: systemClock,
    random: systemRandom,
    listen,
    fakeNodes: 0,
  });
  onTestFinished(() => kubernetes.close());
  addObjects(kubernetes.sim, changes);
  return {
    endpoints: served.map(({ url }) => new URL(url).origin),
    kubernetes,
    openProxmox: (tls) => openHttpTransport({ tls }),
    openKubernetes: (tls) => openHttpTransport({ tls, unreachable: 'KUBERNETES_UNREACHABLE' }),
  };
}

/** A cluster of one host, with the same login. */
export function serveOtherCluster(host: string): Promise<SshDraft> {
  const cluster = { ...CLUSTER, vms: [], hosts: CLUSTER.hosts.slice(0, 1) };
  const renamed = { ...cluster, hosts: cluster.hosts.map((one) => ({ ...one, name: host })) };
  return serveOverSsh(createProxmox({ cluster: () => renamed }), [host]);
}

async function serveOverSsh(sim: ProxmoxSim, hosts = ['pve1', 'pve2']): Promise<SshDraft> {
  const served = await serveSsh(sim, hosts, {
    listen: '127.0.0.1:0',
    authorizedKeys: SSH_KEY.public,
  });
  onTestFinished(() => served.close());
  return {
    hosts: served.hosts.map(({ address }) => address),
    user: 'root',
    privateKeyFile: SSH_KEY_PATH,
    hostKeys: served.hosts.map(({ fingerprint }) => fingerprint),
  };
}

/** Without sockets, which is faster; with them where the test needs SSH. */
async function connect(changes: Changes): Promise<Connections> {
  const proxmox = createProxmox(changes);
  const ssh = changes.ssh === undefined ? undefined : await serveOverSsh(proxmox);
  if (ssh !== undefined) await changes.ssh?.(ssh);
  const url = 'https://kubernetes:6443';
  const adminToken = 'admin';
  const authority = createAuthority();
  const sim = new KubernetesSim({
    clock: systemClock,
    random: systemRandom,
    adminToken,
    join: { server: url, authority },
  });
  addObjects(sim, changes);
  const kubeconfig = JSON.stringify({
    clusters: [{ name: 'sim', cluster: { server: url } }],
    users: [{ name: 'sim', user: { token: adminToken } }],
    contexts: [{ name: 'sim', context: { cluster: 'sim', user: 'sim' } }],
    'current-context': 'sim',
  });
  return {
    ...(ssh !== undefined && { ssh }),
    endpoints: ['https://pve1:8006', 'https://pve2:8006'],
    kubernetes: { url, caPem: authority.certPem, kubeconfig },
    openProxmox: () => Promise.resolve(new ScriptedTransport(simPeer(proxmox, 'all'))),
    openKubernetes: () => Promise.resolve(new SimTransport(sim)),
  };
}

function addObjects(sim: KubernetesSim, { kubernetes, ...changes }: Changes): void {
  addJoinToken(sim);
  sim.create('v1', 'nodes', {
    metadata: { name: 'workers-1', labels: { 'autoscaler.proxmox/group': 'workers' } },
    spec: { providerID: 'proxmox://lab/1250' },
  });
  const { image = 'registry.k8s.io/autoscaling/cluster-autoscaler:v1.35.0', args } =
    changes.autoscaler ?? {};
  sim.create('v1', 'pods', {
    metadata: { name: 'cluster-autoscaler', namespace: 'kube-system' },
    spec: {
      nodeName: 'workers-1',
      containers: [
        { name: 'main', image, command: ['./cluster-autoscaler', ...(args ?? AUTOSCALER_ARGS)] },
      ],
    },
  });
  kubernetes?.(sim);
}

function addJoinToken(sim: KubernetesSim): void {
  const data = {
    'token-id': JOIN_TOKEN.id,
    'token-secret': JOIN_TOKEN.secret,
    'usage-bootstrap-authentication': 'true',
  };
  sim.create('v1', 'secrets', {
    metadata: { name: `bootstrap-token-${JOIN_TOKEN.id}`, namespace: 'kube-system' },
    type: 'bootstrap.kubernetes.io/token',
    data: Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
    ),
  });
}

function parseConfig(draft: object): Config {
  const loaded = loadConfig({
    file: { path: '/etc/pvescaler/config.yaml', text: JSON.stringify(draft) },
    environment: {},
    flags: [],
    homeFolder: '/root',
  });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.config;
}

type Texts = Readonly<Record<string, string | undefined>>;

function createAdapters(
  { environment, files }: { readonly environment: Texts; readonly files: Texts },
  { openProxmox, openKubernetes }: Connections,
  { checksums = `${SHA256}  noble.img\n` }: Changes,
): DoctorAdapters {
  const inspectApi = async ({ name, endpoints, login, tls }: RegionConfig) =>
    createProxmoxInspector({
      region: name,
      endpoints,
      credentials: {
        kind: 'token',
        id: login.kind === 'token' && typeof login.id === 'string' ? login.id : '',
        secret: () => environment['TOKEN_SECRET'] ?? '',
      },
      transport: await openProxmox(
        tls.fingerprints.length > 0
          ? { kind: 'fingerprints', sha256: tls.fingerprints }
          : { kind: 'verify' },
      ),
      clock: systemClock,
      random: systemRandom,
    });
  return {
    readSecret: (source) => {
      const value =
        source.kind === 'environment'
          ? environment[source.variable]
          : source.kind === 'file'
            ? files[source.path]
            : undefined;
      if (value !== undefined) return Promise.resolve({ value, warnings: [] });
      return Promise.reject(new InvalidConfig('SECRET_UNREADABLE', 'the variable is not set'));
    },
    readUrl: (url) =>
      url === LIST_URL
        ? Promise.resolve(checksums)
        : Promise.reject(new InvalidConfig('CONFIG_INVALID', `${url} answers with status 404`)),
    inspectProxmox: async (region) =>
      region.transport.kind === 'ssh'
        ? inspectOverSsh(region.name, region.transport, files)
        : inspectApi(region),
    inspectKubernetes: ({ kubeconfigPath = '', namespace }) =>
      openClusterInspector({
        source: { kind: 'kubeconfig', path: kubeconfigPath },
        openTransport: ({ caPem }) => openKubernetes({ kind: 'verify', ...(caPem && { caPem }) }),
        clock: systemClock,
        namespace,
      }),
    probe: async (url, { caPem, authorization, signal }) => {
      const transport = await openKubernetes(
        caPem === undefined ? { kind: 'insecure' } : { kind: 'verify', caPem },
      );
      const headers = authorization === undefined ? {} : { authorization };
      const timeoutMs = 5_000;
      const { status, body } = await transport.request({
        method: 'GET',
        url,
        headers,
        timeoutMs,
        signal,
      });
      const parts: Uint8Array[] = [];
      for await (const part of body) parts.push(part);
      await transport.close();
      return { status, body: Buffer.concat(parts).toString('utf8') };
    },
  };
}

function inspectOverSsh(
  region: string,
  { hosts, user, login, trust }: Extract<RegionConfig['transport'], { kind: 'ssh' }>,
  files: Texts,
) {
  const path = login.kind === 'key' ? login.path : '';
  const readKey = () =>
    files[path] === undefined ? Promise.reject(new Error('ENOENT')) : Promise.resolve(files[path]);
  const target = {
    user,
    login: { kind: 'key', path, readKey },
    trust:
      trust.kind === 'fingerprints'
        ? trust
        : trustKnownHosts(trust.path, {
            read: () => Promise.resolve(files[trust.path]),
            appendLine: () => Promise.reject(new Error('doctor writes nothing')),
            ask: undefined,
          }),
    openSocket,
    clock: systemClock,
    unreachable: 'PVE_UNREACHABLE',
  } as const;
  return createProxmoxInspectorOverSsh({
    region,
    hosts: hosts.map(({ hostname, port }) => ({
      hostname,
      port,
      shell: openSshShell({ host: hostname, port, ...target }),
    })),
    clock: systemClock,
    random: systemRandom,
  });
}
