// SPDX-License-Identifier: Apache-2.0
// The composition root: the only file that knows the process and every adapter. Adapters are imported when
// a command asks for them, so that `--help` does not pay for SQLite or an HTTP client.
import { access, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { homedir, hostname, tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import manifest from '../package.json' with { type: 'json' };
import {
  type CliContext,
  type ConnectedCluster,
  type ConnectOptions,
  externalGrpcSettings,
  type FaceParts,
  type HealthOrder,
  type ProxmoxSimOrder,
  type RunningFace,
  type RunningSim,
  runCli,
  type Telemetry,
} from './cli/index.ts';
import type { Config, RegionConfig, ResolvedSecret, SecretSource } from './config/index.ts';
import type { GrpcServerOptions } from './externalgrpc/worker/messages.ts';
import type { ConnectionSource } from './kubernetes/index.ts';
import {
  InvalidConfig,
  InvalidRequest,
  StoreUnusable,
  UnsupportedVersion,
} from './ports/errors.ts';
import type { Meters } from './ports/meters.ts';
import type { Transport } from './ports/transport.ts';
import type { Credentials } from './proxmox/index.ts';
import type { OpenConnection, ProxmoxSim, SavedState } from './sim/proxmox/index.ts';
import {
  fencedTransport,
  openHttpTransport,
  runProgram,
  startThread,
  systemClock,
  systemRandom,
  type TransportTls,
} from './system/index.ts';

const SIGNAL_EXIT_CODE = 130;

/** The first signal asks for a graceful end; the second one does not ask. */
function endOnSignals(): AbortSignal {
  const abort = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      if (abort.signal.aborted) process.exit(SIGNAL_EXIT_CODE);
      abort.abort();
    });
  }
  return abort.signal;
}

/**
 * `pvescaler config schema | head` closes our output early; that is no failure, and no reason to stop before the
 * exit code is known.
 */
function bearClosedPipes(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
}

/** Turns one expected failure into an answer. */
function unless<T>(code: string, answer: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === code) return answer;
    throw error;
  };
}

/** Of the cluster that is made up when none is described. They open nothing real. */
const SIMULATED_LOGINS = [
  'token scaler@pve!sim=00000000-0000-4000-8000-000000000001',
  "user root@pam, password 'simulated'",
];

function loadSimState(sim: ProxmoxSim, text: string): void {
  try {
    sim.loadState(JSON.parse(text) as SavedState);
  } catch (cause) {
    throw new InvalidConfig('CONFIG_INVALID', 'the state file is not one of this simulator', {
      hint: 'Name another file by --state, or move this one away to begin anew.',
      cause,
    });
  }
}

/** How simulated guests reach the Kubernetes server that their user-data names. */
const connectGuest: OpenConnection = ({ caPem, client }) =>
  openHttpTransport({
    tls:
      caPem === undefined
        ? { kind: 'insecure' }
        : { kind: 'verify', caPem, ...(client !== undefined && { client }) },
    unreachable: 'KUBERNETES_UNREACHABLE',
  });

async function startProxmoxSim(order: ProxmoxSimOrder): Promise<RunningSim> {
  const sim = await import('./sim/proxmox/index.ts');
  const { cluster, hosts, speed, version, state, listen, tls } = order;
  const described =
    cluster === undefined ? undefined : sim.parseClusterDescription(cluster.text, cluster.path);
  if (described?.ok === false) {
    throw new InvalidConfig('CONFIG_INVALID', described.problems.join('\n'));
  }
  const site = described?.cluster ?? sim.defaultCluster(hosts);
  const simulated = sim.createProxmoxSim({
    cluster: site,
    clock: systemClock,
    random: systemRandom,
    speed,
    urlSource: sim.networkUrlSource(),
    connect: connectGuest,
    ...(version !== undefined && { version }),
  });
  if (state !== undefined) loadSimState(simulated, state);
  const served = await sim.serveProxmoxSim(simulated, { listen, tls }).catch((cause: unknown) => {
    throw new InvalidRequest('REQUEST_INVALID', `cannot listen on ${listen}: ${String(cause)}`, {
      hint: 'Name another address by --listen, for instance 127.0.0.1:0 for any free port.',
      cause,
    });
  });
  return {
    ...served,
    version: simulated.version,
    hosts: site.hosts.map(({ name }) => name),
    credentials: cluster === undefined ? SIMULATED_LOGINS : [],
    saveState: () => JSON.stringify(simulated.saveState()),
  };
}

async function openStore(path: string) {
  const { fileSystemWarnings, openSqliteStore } = await import('./store/index.ts');
  const store = await openSqliteStore({ path, clock: systemClock, random: systemRandom });
  return { store, warnings: await fileSystemWarnings(path) };
}

async function readSecret(source: SecretSource): Promise<ResolvedSecret> {
  const { resolveSecret } = await import('./config/index.ts');
  return resolveSecret(source, {
    environment: process.env,
    async readFile(path) {
      const [text, { mode }] = await Promise.all([readFile(path, 'utf8'), stat(path)]);
      return { text, mode };
    },
  });
}

type Login = RegionConfig['login'];

/** Read anew whenever asked for, so that a rotated secret is picked up. */
async function credentialsOf(login: Login): Promise<Credentials> {
  if (login.kind === 'none') {
    throw new UnsupportedVersion('FEATURE_NOT_THERE', 'Proxmox over SSH is not in this release');
  }
  const reveal = (source: SecretSource) => async () => (await readSecret(source)).secret.reveal();
  if (login.kind === 'password') {
    return { kind: 'password', user: login.user, password: reveal(login.password) };
  }
  const id = typeof login.id === 'string' ? login.id : await reveal(login.id)();
  return { kind: 'token', id, secret: reveal(login.secret) };
}

async function tlsOf({
  caPath,
  fingerprints,
  insecure,
}: RegionConfig['tls']): Promise<TransportTls> {
  if (insecure) return { kind: 'insecure' };
  if (fingerprints.length > 0) return { kind: 'fingerprints', sha256: fingerprints };
  if (caPath === undefined) return { kind: 'verify' };
  const caPem = await readFile(caPath, 'utf8').catch((cause: unknown) => {
    throw new InvalidConfig('CONFIG_UNREADABLE', `tls.caFile ${caPath} cannot be read`, { cause });
  });
  return { kind: 'verify', caPem };
}

async function connect(region: RegionConfig, { fence, meters }: ConnectOptions) {
  const { createProxmoxHypervisor } = await import('./proxmox/index.ts');
  const { login, tls } = region;
  const credentials = await credentialsOf(login);
  const secret = login.kind === 'token' ? login.secret : undefined;
  const warnings = secret === undefined ? [] : (await readSecret(secret)).warnings;
  const direct = fencedTransport(await openHttpTransport({ tls: await tlsOf(tls) }), fence);
  const hypervisor = createProxmoxHypervisor({
    region: region.name,
    endpoints: region.endpoints,
    credentials,
    transport: meters === undefined ? direct : await metered(direct, region.name, meters),
    clock: systemClock,
    random: systemRandom,
    limits: { requestTimeoutMs: region.requestTimeoutMs },
  });
  const insecure = `region ${region.name}: anybody in between can read the token (tls.insecure)`;
  return { hypervisor, warnings: tls.insecure ? [...warnings, insecure] : warnings };
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount/token';

/** What is configured; else the pod's own account; else where kubectl looks. */
async function clusterSource({
  kubeconfigPath,
  context,
}: Config['cluster']): Promise<ConnectionSource | undefined> {
  if (kubeconfigPath !== undefined) return { kind: 'kubeconfig', path: kubeconfigPath, context };
  const isThere = (path: string) =>
    access(path).then(
      () => true,
      () => false,
    );
  const inPod = process.env['KUBERNETES_SERVICE_HOST'] !== undefined;
  if (inPod && (await isThere(SERVICE_ACCOUNT))) return { kind: 'in-cluster' };
  const [named = ''] = (process.env['KUBECONFIG'] ?? '').split(delimiter);
  const path = named === '' ? join(homedir(), '.kube/config') : named;
  return (await isThere(path)) ? { kind: 'kubeconfig', path, context } : undefined;
}

async function connectCluster(
  cluster: Config['cluster'],
  { meters, onError }: ConnectOptions,
): Promise<ConnectedCluster | undefined> {
  const source = await clusterSource(cluster);
  if (source === undefined) return undefined;
  const { openKubernetesCluster } = await import('./kubernetes/index.ts');
  const opened = await openKubernetesCluster({
    source,
    runProgram,
    openTransport: ({ caPem, isInsecure, serverName, client }) =>
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
      }),
    clock: systemClock,
    random: systemRandom,
    namespace: cluster.namespace,
    instance: `${hostname()}/${process.pid}`,
    // Nothing in this release looks at pods.
    watchPods: false,
    ...(onError !== undefined && { onError }),
    onWatchRestart: (resource, reason) =>
      meters?.add('pvescaler_kubernetes_watch_restarts_total', { resource, reason }),
  });
  const server = source.kind === 'kubeconfig' ? opened.server : undefined;
  if (meters === undefined) return { cluster: opened, server };
  const { meteredCluster } = await import('./telemetry/index.ts');
  return { cluster: meteredCluster(opened, { meters, clock: systemClock }), server };
}

async function metered(transport: Transport, region: string, meters: Meters): Promise<Transport> {
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
    telling: (store) => withJournalTelemetry(store, { log: lines, meters: metrics }),
  };
}

async function serveHealth({ listen: address, ...sources }: HealthOrder) {
  const { createHealthApp, listen } = await import('./http/index.ts');
  return listen(createHealthApp(sources), address);
}

async function startFace(parts: FaceParts): Promise<RunningFace | undefined> {
  const { config, fleet, clock, log, meters, signal } = parts;
  if (config.mode !== 'externalgrpc') return undefined;
  const { superviseGrpcWorker } = await import('./externalgrpc/worker/supervise.ts');
  const { listen, tls, insecure, expander } = config.grpc;
  const order: GrpcServerOptions = {
    settings: externalGrpcSettings(config),
    poolLimits: fleet.poolLimits,
    statePath: config.state.path,
    listen,
    tls,
    insecure,
    expander,
  };
  const face = await superviseGrpcWorker({
    channel: startThread(new URL('./grpc-worker.js', import.meta.url), {
      name: 'grpc',
      input: order,
    }),
    forecast: fleet.forecast,
    clock,
    warn: (message) => log.warn(message),
    onCall({ rpc, code, ms }) {
      meters.add('pvescaler_grpc_calls_total', { rpc, code });
      meters.observe('pvescaler_grpc_call_duration_seconds', { rpc }, ms / 1_000);
    },
    signal,
  });
  const { port, expanderPort, failed } = face;
  const plugin = expanderPort === undefined ? '' : `, expander on port ${expanderPort}`;
  return {
    what: `gRPC for the Cluster Autoscaler on port ${port}${insecure ? ' without TLS' : ''}${plugin}`,
    waitingFor: () => face.waitingFor(),
    failed,
    close: () => face.close(),
  };
}

const URL_TIMEOUT_MS = 30_000;

async function readUrl(url: string): Promise<string> {
  const transport = await openHttpTransport({});
  try {
    const answer = await transport.request({ method: 'GET', url, headTimeoutMs: URL_TIMEOUT_MS });
    const parts: Uint8Array[] = [];
    for await (const part of answer.body) parts.push(part);
    if (answer.status !== 200) {
      throw new InvalidConfig('CONFIG_INVALID', `${url} answers ${answer.status}`);
    }
    return Buffer.concat(parts).toString('utf8');
  } finally {
    await transport.close();
  }
}

function contextOfThisProcess(): CliContext {
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    environment: process.env,
    homeFolder: homedir(),
    workingFolder: process.cwd(),
    tempFolders: [tmpdir()],
    files: {
      read: (path) => readFile(path, 'utf8').catch(unless('ENOENT', undefined)),
      async write(path, text, { overwrite }) {
        await mkdir(dirname(path), { recursive: true });
        return writeFile(path, text, { flag: overwrite ? 'w' : 'wx', mode: 0o600 }).then(
          () => 'written',
          unless('EEXIST', 'exists-already'),
        );
      },
    },
    clock: systemClock,
    random: systemRandom,
    signal: endOnSignals(),
    version: manifest.version,
    processName: `${hostname()}/${process.pid}`,
    adapters: {
      startProxmoxSim,
      connect,
      connectCluster,
      startFace,
      openTelemetry,
      serveHealth,
      async readSecret(source) {
        const { secret, warnings } = await readSecret(source);
        return { value: secret.reveal(), warnings };
      },
      readUrl,
      async makeStore(path) {
        await mkdir(dirname(path), { recursive: true });
        return openStore(path);
      },
      async openStore(path) {
        await access(path).catch((cause: unknown) => {
          throw new StoreUnusable('STORE_UNREADABLE', `there is no state database at ${path}`, {
            hint: 'Whatever drives makes it: pvescaler serve, pool scale, orphans. If one has, check state.path.',
            cause,
          });
        });
        return openStore(path);
      },
    },
  };
}

export async function main(): Promise<void> {
  bearClosedPipes();
  process.exitCode = await runCli(process.argv.slice(2), contextOfThisProcess());
}
