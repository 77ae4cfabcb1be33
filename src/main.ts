// SPDX-License-Identifier: Apache-2.0
// The composition root: creates the adapters and passes them to the command line. Adapters are imported when a command
// needs them, so that `--help` does not load SQLite or an HTTP client.
import { readFile } from 'node:fs/promises';
import { homedir, hostname, tmpdir } from 'node:os';
import { delimiter, dirname } from 'node:path';
import { getAsset, isSea } from 'node:sea';
import manifest from '../package.json' with { type: 'json' };
import {
  type CliContext,
  type KubernetesSimOptions,
  type ProxmoxSimOptions,
  runCli,
} from './cli/index.ts';
import type { Config, RegionConfig, ResolvedSecret, SecretSource } from './config/index.ts';
import type { GrpcServerOptions } from './externalgrpc/worker/messages.ts';
import type { ConnectionSource, OpenTransport, SecretReader } from './kubernetes/index.ts';
import { InvalidConfig, StoreUnusable } from './ports/errors.ts';
import type { Meters } from './ports/meters.ts';
import type { Transport } from './ports/transport.ts';
import type { Credentials } from './proxmox/index.ts';
import type { FrontEndOptions, HealthServerOptions, RunningFrontEnd } from './serve/index.ts';
import type { ConnectedCluster, ConnectOptions, OpenedStore, Telemetry } from './setup/index.ts';
import type { OpenConnection } from './sim/proxmox/index.ts';
import {
  abortOnSignals,
  fencedTransport,
  ignoreClosedPipes,
  openHttpTransport,
  openSocket,
  readUrl,
  runProgram,
  startThread,
  systemClock,
  systemFiles,
  systemRandom,
  type ThreadProgram,
  type TransportTls,
  terminalQuestion,
} from './system/index.ts';

/** Unique per process start. */
const PROCESS_NAME = `${hostname()}/${process.pid}`;

/** How simulated guests connect to the Kubernetes API server in their user-data. */
const connectSimulatedGuest: OpenConnection = ({ caPem, client }) =>
  openHttpTransport({
    tls:
      caPem === undefined
        ? { kind: 'insecure' }
        : { kind: 'verify', caPem, ...(client !== undefined && { client }) },
    unreachable: 'KUBERNETES_UNREACHABLE',
  });

async function startProxmoxSim(options: ProxmoxSimOptions) {
  const sim = await import('./sim/proxmox/index.ts');
  return sim.startProxmoxSim({
    ...options,
    clock: systemClock,
    random: systemRandom,
    connect: connectSimulatedGuest,
  });
}

async function startKubernetesSim(options: KubernetesSimOptions) {
  const sim = await import('./sim/kubernetes/index.ts');
  return sim.startKubernetesSim({ ...options, clock: systemClock, random: systemRandom });
}

async function openDatabase(path: string): Promise<OpenedStore> {
  const { fileSystemWarnings, openDriverLock, openSqliteStore } = await import('./store/index.ts');
  const store = await openSqliteStore({ path, clock: systemClock, random: systemRandom });
  const [warnings, driverLock] = await Promise.all([
    fileSystemWarnings(path),
    openDriverLock(path, systemClock),
  ]);
  return { store, warnings, driverLock };
}

async function openOrCreateStore(path: string): Promise<OpenedStore> {
  await systemFiles.createFolder(dirname(path)).catch((cause: unknown) => {
    throw new StoreUnusable(
      'STORE_READ_ONLY',
      `the folder of the state database ${path} cannot be created: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  });
  return openDatabase(path);
}

async function openStore(path: string): Promise<OpenedStore> {
  if (await systemFiles.exists(path)) return openDatabase(path);
  throw new StoreUnusable('STORE_UNREADABLE', `the state database ${path} does not exist`, {
    hint: 'pvescaler serve, pool scale and orphans create it. If one of them has run, check state.path.',
  });
}

async function readSecret(
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

async function findKubernetes(cluster: Config['cluster']): Promise<ConnectionSource | undefined> {
  const { findConnectionSource } = await import('./kubernetes/index.ts');
  return findConnectionSource({
    kubeconfigPath: cluster.kubeconfigPath,
    context: cluster.context,
    environment: process.env,
    homeFolder: homedir(),
    pathDelimiter: delimiter,
    fileExists: (path) => systemFiles.exists(path),
  });
}

const openKubernetesTransport: OpenTransport = ({ caPem, isInsecure, serverName, client }) =>
  openHttpTransport({
    unreachable: 'KUBERNETES_UNREACHABLE',
    tls: isInsecure
      ? { kind: 'insecure', ...(client !== undefined && { client }) }
      : {
          kind: 'verify',
          ...(caPem !== undefined && { caPem }),
          ...(client !== undefined && { client }),
          ...(serverName !== undefined && { serverName }),
        },
  });

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

async function connectProxmox(region: RegionConfig, options: ConnectOptions) {
  const { transport, login } = region;
  if (transport.kind === 'ssh') return connectProxmoxOverSsh(region, transport, options);
  if (login.kind === 'none')
    throw new InvalidConfig('CONFIG_INVALID', `region ${region.name} has no credentials`);
  return connectProxmoxRest(region, login, options);
}

type SshTransport = Extract<RegionConfig['transport'], { kind: 'ssh' }>;

async function connectProxmoxOverSsh(
  region: RegionConfig,
  { hosts, user, login, trust }: SshTransport,
  { fence, cluster, meters }: ConnectOptions,
) {
  const [{ createProxmoxOverSsh }, ssh, telemetry] = await Promise.all([
    import('./proxmox/index.ts'),
    import('./ssh/index.ts'),
    import('./telemetry/index.ts'),
  ]);
  const metered = (transport: Transport) =>
    meters === undefined
      ? transport
      : telemetry.meteredTransport(transport, { region: region.name, meters, clock: systemClock });
  const target = {
    user,
    login: ssh.chooseLogin(sshKeyFile(login, cluster), process.env['SSH_AUTH_SOCK']),
    trust:
      trust.kind === 'fingerprints'
        ? trust
        : ssh.trustKnownHosts(trust.path, { ...systemFiles, ask: terminalQuestion() }),
    openSocket,
    clock: systemClock,
    unreachable: 'PVE_UNREACHABLE',
  } as const;
  const hypervisor = createProxmoxOverSsh({
    region: region.name,
    hosts: hosts.map(({ hostname, port }) => ({
      hostname,
      port,
      shell: ssh.openSshShell({ host: hostname, port, ...target }),
    })),
    wrap: (transport) => metered(fencedTransport(transport, fence)),
    clock: systemClock,
    random: systemRandom,
    limits: { requestTimeoutMs: region.requestTimeoutMs },
  });
  return { hypervisor, warnings: [] };
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

async function connectKubernetes(
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

async function withMeters(
  transport: Transport,
  region: string,
  meters: Meters,
): Promise<Transport> {
  const { meteredTransport } = await import('./telemetry/index.ts');
  return meteredTransport(transport, { region, meters, clock: systemClock });
}

async function openTelemetry(log: Config['log']): Promise<Telemetry> {
  const { createLog, createMetrics, withJournalTelemetry } = await import('./telemetry/index.ts');
  const metrics = createMetrics({ includeProcess: true });
  const lines = createLog({
    ...log,
    write: (line) => void process.stdout.write(line),
    now: () => systemClock.now(),
  });
  return {
    log: lines,
    meters: metrics,
    metrics,
    instrumentStore: (store) => withJournalTelemetry(store, { log: lines, meters: metrics }),
  };
}

async function startHealthServer({ listen: address, ...sources }: HealthServerOptions) {
  const { createHealthApp, listen } = await import('./http/index.ts');
  return listen(createHealthApp(sources), address);
}

async function startFrontEnd(options: FrontEndOptions): Promise<RunningFrontEnd | undefined> {
  return options.config.mode === 'externalgrpc'
    ? startGrpcServer(options)
    : startStandalone(options);
}

async function startStandalone(options: FrontEndOptions): Promise<RunningFrontEnd | undefined> {
  const { config, store, cluster, setDrainCheck } = options;
  if (cluster === undefined) return undefined;
  const { startAutoscaler } = await import('./autoscaler/index.ts');
  const { pools, intervals, guards, autoscaler, pricing, gpu } = config;
  const running = startAutoscaler({
    ...options,
    cluster,
    journal: store.journal,
    pools,
    settings: { ...autoscaler, guards, pricing, gpuLabel: gpu.label },
    scanMs: intervals.scanMs,
    namespace: config.cluster.namespace,
  });
  setDrainCheck(running.checkDrain);
  return running;
}

/** A single-file binary contains the program of the thread. */
function grpcWorker(): ThreadProgram {
  if (isSea()) return { source: getAsset('grpc-worker', 'utf8') };
  return new URL('./grpc-worker.js', import.meta.url);
}

async function startGrpcServer(options: FrontEndOptions): Promise<RunningFrontEnd> {
  const { config, fleet, clock, log, meters, signal, onRefresh } = options;
  const { superviseGrpcWorker } = await import('./externalgrpc/worker/supervise.ts');
  const { listen, tls, insecure, expander } = config.grpc;
  const workerOptions: GrpcServerOptions = {
    settings: { pools: config.pools, pricing: config.pricing, gpu: config.gpu },
    poolLimits: fleet.poolLimits,
    statePath: config.state.path,
    listen,
    tls,
    insecure,
    expander,
  };
  const server = await superviseGrpcWorker({
    channel: startThread(grpcWorker(), { name: 'grpc', input: workerOptions }),
    forecast: fleet.forecast,
    clock,
    warn: (message) => log.warn(message),
    onCall({ rpc, code, ms }) {
      if (rpc === 'Refresh' && code === 'OK') onRefresh();
      meters.add('pvescaler_grpc_calls_total', { rpc, code });
      meters.observe('pvescaler_grpc_call_duration_seconds', { rpc }, ms / 1_000);
    },
    signal,
  });
  const { port, expanderPort, failed } = server;
  const plugin = expanderPort === undefined ? '' : `, expander on port ${expanderPort}`;
  return {
    description: `gRPC for the Cluster Autoscaler on port ${port}${insecure ? ' without TLS' : ''}${plugin}`,
    waitingFor: () => server.waitingFor(),
    failed,
    close: () => server.close(),
  };
}

function createContext(): CliContext {
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    environment: process.env,
    homeFolder: homedir(),
    workingFolder: process.cwd(),
    tempFolders: [tmpdir()],
    files: systemFiles,
    clock: systemClock,
    random: systemRandom,
    signal: abortOnSignals(),
    version: manifest.version,
    processName: PROCESS_NAME,
    adapters: {
      startProxmoxSim,
      startKubernetesSim,
      connectProxmox,
      connectKubernetes,
      startFrontEnd,
      openTelemetry,
      startHealthServer,
      async readSecret(source, cluster) {
        const { secret, warnings } = await readSecret(source, cluster);
        return { value: secret.reveal(), warnings };
      },
      readUrl,
      openStore,
      openOrCreateStore,
    },
  };
}

export async function main(): Promise<void> {
  ignoreClosedPipes();
  process.exitCode = await runCli(process.argv.slice(2), createContext());
}
