// SPDX-License-Identifier: Apache-2.0
// The part of the composition root that connects to Proxmox and Kubernetes, and reads the secrets for that. main.ts
// imports it when a command needs a connection.
import { readFile } from 'node:fs/promises';
import type { Config, RegionConfig, ResolvedSecret, SecretSource } from './config/index.ts';
import type { ProbeOptions } from './doctor/index.ts';
import type { SecretReader } from './kubernetes/index.ts';
import { findKubernetes, openKubernetesTransport } from './kubernetes-connection.ts';
import { InvalidConfig, type PvescalerError } from './ports/errors.ts';
import type { Meters } from './ports/meters.ts';
import type { PoolObjects } from './ports/pool-objects.ts';
import type { Transport } from './ports/transport.ts';
import type { Credentials } from './proxmox/index.ts';
import type { ConnectedCluster, ConnectOptions } from './setup/index.ts';
import {
  fencedTransport,
  openHttpTransport,
  openSocket,
  PROCESS_NAME,
  runProgram,
  systemClock,
  systemFiles,
  systemRandom,
  type TransportTls,
  terminalQuestion,
} from './system/index.ts';

export async function readSecret(
  source: SecretSource,
  cluster: Config['cluster'],
): Promise<ResolvedSecret> {
  const { resolveSecret } = await import('./config/index.ts');
  const reader = source.kind === 'kubernetes' ? await secretReader(cluster) : undefined;
  return resolveSecret(source, {
    environment: process.env,
    readFile: (path) => systemFiles.readWithMode(path),
    ...(reader !== undefined && { readKubernetesSecret: (ref) => reader.read(ref) }),
  });
}

/** One per cluster, because it caches what it has read. */
const secretReaders = new Map<string, Promise<SecretReader | undefined>>();

function secretReader(cluster: Config['cluster']): Promise<SecretReader | undefined> {
  const id = JSON.stringify([cluster.kubeconfigPath, cluster.context]);
  const known = secretReaders.get(id) ?? openSecretReader(cluster);
  secretReaders.set(id, known);
  // A kubeconfig that could not be read may be there at the next attempt.
  known.catch(() => secretReaders.delete(id));
  return known;
}

async function openSecretReader(cluster: Config['cluster']): Promise<SecretReader | undefined> {
  const kubernetes = await import('./kubernetes/index.ts');
  const source = await findKubernetes(cluster);
  if (source === undefined) return undefined;
  return kubernetes.openSecretReader({
    source,
    runProgram,
    openTransport: openKubernetesTransport,
    clock: systemClock,
  });
}

/** Secrets are read again for each use, so that a rotated one is picked up. */
async function createCredentials(
  login: Exclude<RegionConfig['login'], { kind: 'none' }>,
  cluster: Config['cluster'],
): Promise<Credentials> {
  const reveal = (source: SecretSource) => async () =>
    (await readSecret(source, cluster)).secret.reveal();
  if (login.kind === 'password') {
    return { kind: 'password', user: login.user, password: reveal(login.password) };
  }
  const id = typeof login.id === 'string' ? login.id : await reveal(login.id)();
  return { kind: 'token', id, secret: reveal(login.secret) };
}

async function readTls(tls: RegionConfig['tls']): Promise<TransportTls> {
  const { caPath, fingerprints, insecure } = tls;
  if (insecure) return { kind: 'insecure' };
  if (fingerprints.length > 0) return { kind: 'fingerprints', sha256: fingerprints };
  if (caPath === undefined) return { kind: 'verify' };
  const caPem = await readFile(caPath, 'utf8').catch((cause: unknown) => {
    throw new InvalidConfig(
      'CONFIG_UNREADABLE',
      `cannot read tls.caFile ${caPath}: ${String(cause)}`,
      {
        cause,
      },
    );
  });
  return { kind: 'verify', caPem };
}

export async function inspectProxmox(region: RegionConfig, cluster: Config['cluster']) {
  const { createProxmoxInspector, createProxmoxInspectorOverSsh } = await import(
    './proxmox/index.ts'
  );
  const { name, endpoints, login, tls, requestTimeoutMs, transport } = region;
  if (transport.kind === 'ssh') {
    // Without questions: the report has the fingerprint of an unknown host.
    return createProxmoxInspectorOverSsh(await openSshHosts(region, transport, { cluster }));
  }
  if (login.kind === 'none') throw noCredentials(region);
  return createProxmoxInspector({
    region: name,
    endpoints,
    credentials: await createCredentials(login, cluster),
    transport: await openHttpTransport({ tls: await readTls(tls) }),
    clock: systemClock,
    random: systemRandom,
    limits: { requestTimeoutMs },
  });
}

export async function inspectKubernetes(cluster: Config['cluster']) {
  const { openClusterInspector } = await import('./kubernetes/index.ts');
  const source = await findKubernetes(cluster);
  if (source === undefined) return undefined;
  const { namespace } = cluster;
  const openTransport = openKubernetesTransport;
  return openClusterInspector({ source, runProgram, openTransport, clock: systemClock, namespace });
}

const PROBE_TIMEOUT_MS = 10_000;

export async function probe(url: string, { caPem, authorization, signal }: ProbeOptions) {
  const transport = await openHttpTransport({
    tls: caPem === undefined ? { kind: 'insecure' } : { kind: 'verify', caPem },
    unreachable: 'KUBERNETES_UNREACHABLE',
  });
  const headers = caPem === undefined || authorization === undefined ? {} : { authorization };
  try {
    const request = { method: 'GET', url, headers, timeoutMs: PROBE_TIMEOUT_MS, signal } as const;
    const { status, body } = await transport.request(request);
    const parts: Uint8Array[] = [];
    for await (const part of body) parts.push(part);
    return { status, body: Buffer.concat(parts).toString('utf8') };
  } finally {
    await transport.close();
  }
}

export async function connectProxmox(region: RegionConfig, options: ConnectOptions) {
  const { transport, login } = region;
  if (transport.kind === 'ssh') return connectProxmoxOverSsh(region, transport, options);
  if (login.kind === 'none') throw noCredentials(region);
  return connectProxmoxRest(region, login, options);
}

function noCredentials({ name }: RegionConfig): InvalidConfig {
  return new InvalidConfig('CONFIG_INVALID', `region ${name} has no credentials`);
}

type SshTransport = Extract<RegionConfig['transport'], { kind: 'ssh' }>;

async function connectProxmoxOverSsh(
  region: RegionConfig,
  transport: SshTransport,
  { fence, cluster, meters }: ConnectOptions,
) {
  const [{ createProxmoxOverSsh }, telemetry] = await Promise.all([
    import('./proxmox/index.ts'),
    import('./telemetry/index.ts'),
  ]);
  const metered = (direct: Transport) =>
    meters === undefined
      ? direct
      : telemetry.meteredTransport(direct, { region: region.name, meters, clock: systemClock });
  const hypervisor = createProxmoxOverSsh({
    ...(await openSshHosts(region, transport, { cluster, ask: terminalQuestion() })),
    wrap: (pvesh) => metered(fencedTransport(pvesh, fence)),
  });
  return { hypervisor, warnings: [] };
}

/** Connects at the first command. */
async function openSshHosts(
  region: RegionConfig,
  { hosts, user, login, trust }: SshTransport,
  { cluster, ask }: Pick<ConnectOptions, 'cluster'> & { ask?: ReturnType<typeof terminalQuestion> },
) {
  const ssh = await import('./ssh/index.ts');
  const target = {
    user,
    login: ssh.chooseLogin(sshKeyFile(login, cluster), process.env['SSH_AUTH_SOCK']),
    trust:
      trust.kind === 'fingerprints'
        ? trust
        : ssh.trustKnownHosts(trust.path, { ...systemFiles, ask }),
    openSocket,
    clock: systemClock,
    unreachable: 'PVE_UNREACHABLE',
  } as const;
  return {
    region: region.name,
    hosts: hosts.map(({ hostname, port }) => ({
      hostname,
      port,
      shell: ssh.openSshShell({ host: hostname, port, ...target }),
    })),
    clock: systemClock,
    random: systemRandom,
    limits: { requestTimeoutMs: region.requestTimeoutMs },
  };
}

/** The agent if no key file is configured. */
function sshKeyFile(login: SshTransport['login'], cluster: Config['cluster']) {
  if (login.kind === 'agent') return undefined;
  const { path, passphrase } = login;
  const readPassphrase = async (source: SecretSource) =>
    (await readSecret(source, cluster)).secret.reveal();
  return {
    path,
    readKey: () => readFile(path, 'utf8'),
    ...(passphrase !== undefined && { readPassphrase: () => readPassphrase(passphrase) }),
  };
}

async function connectProxmoxRest(
  region: RegionConfig,
  login: Exclude<RegionConfig['login'], { kind: 'none' }>,
  { fence, cluster, meters }: ConnectOptions,
) {
  const { createProxmoxHypervisor } = await import('./proxmox/index.ts');
  const { endpoints, tls, requestTimeoutMs } = region;
  const credentials = await createCredentials(login, cluster);
  const secret = login.kind === 'token' ? login.secret : undefined;
  const warnings = secret === undefined ? [] : (await readSecret(secret, cluster)).warnings;
  const direct = fencedTransport(await openHttpTransport({ tls: await readTls(tls) }), fence);
  const hypervisor = createProxmoxHypervisor({
    region: region.name,
    endpoints,
    credentials,
    transport: meters === undefined ? direct : await withMeters(direct, region.name, meters),
    clock: systemClock,
    random: systemRandom,
    limits: { requestTimeoutMs },
  });
  const insecure = `region ${region.name}: tls.insecure is set; an attacker on the network can read the token`;
  return { hypervisor, warnings: tls.insecure ? [...warnings, insecure] : warnings };
}

export async function connectKubernetes(
  cluster: Config['cluster'],
  { meters, onBackgroundError, watch }: ConnectOptions,
): Promise<ConnectedCluster | undefined> {
  const { openKubernetesCluster } = await import('./kubernetes/index.ts');
  const source = await findKubernetes(cluster);
  if (source === undefined) return undefined;
  const opened = await openKubernetesCluster({
    source,
    runProgram,
    openTransport: openKubernetesTransport,
    clock: systemClock,
    random: systemRandom,
    namespace: cluster.namespace,
    instance: PROCESS_NAME,
    watch,
    ...(onBackgroundError !== undefined && { onError: onBackgroundError }),
    onWatchRestart: (resource, reason) =>
      meters?.add('pvescaler_kubernetes_watch_restarts_total', { resource, reason }),
  });
  const server = source.kind === 'kubeconfig' ? opened.server : undefined;
  if (meters === undefined) return { cluster: opened, server };
  const { meteredCluster } = await import('./telemetry/index.ts');
  return { cluster: meteredCluster(opened, { meters, clock: systemClock }), server };
}

export async function openPoolObjects(
  cluster: Config['cluster'],
  { onError }: { readonly onError: (error: PvescalerError) => void },
): Promise<PoolObjects | undefined> {
  const kubernetes = await import('./kubernetes/index.ts');
  const source = await findKubernetes(cluster);
  if (source === undefined) return undefined;
  return kubernetes.openPoolObjects({
    source,
    runProgram,
    openTransport: openKubernetesTransport,
    clock: systemClock,
    random: systemRandom,
    namespace: cluster.namespace,
    onError,
  });
}

async function withMeters(
  transport: Transport,
  region: string,
  meters: Meters,
): Promise<Transport> {
  const { meteredTransport } = await import('./telemetry/index.ts');
  return meteredTransport(transport, { region, meters, clock: systemClock });
}
