// SPDX-License-Identifier: Apache-2.0
// The composition root: creates the adapters and passes them to the command line. Adapters are imported when a command
// needs them, so that `--help` does not load SQLite or an HTTP client.
import { readFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { dirname } from 'node:path';
import manifest from '../package.json' with { type: 'json' };
import {
  type CliContext,
  type KubernetesSimOptions,
  type ProxmoxSimOptions,
  runCli,
} from './cli/index.ts';
import { openTelemetry, startDashboard, startFrontEnd, startHealthServer } from './daemon.ts';
import { StoreUnusable, Unreachable } from './ports/errors.ts';
import type { OpenedStore } from './setup/index.ts';
import type { OpenConnection } from './sim/proxmox/index.ts';
import type { SshLogin } from './ssh/index.ts';
import {
  abortOnSignals,
  ask,
  ignoreClosedPipes,
  onHangUp,
  openHttpTransport,
  openSocket,
  PROCESS_NAME,
  readUrl,
  runInteractive,
  systemClock,
  systemFiles,
  systemRandom,
} from './system/index.ts';

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
    hint: 'Nothing was created with it yet: pvescaler serve, pool scale, vm create and orphans create it. If one of them has run, check state.path.',
  });
}

const checkSshLogin: CliContext['adapters']['checkSshLogin'] = async (
  { host, user, privateKeyPath },
  call,
) => {
  const { openSshShell } = await import('./ssh/index.ts');
  const login: SshLogin =
    privateKeyPath === undefined
      ? { kind: 'agent', socketPath: process.env['SSH_AUTH_SOCK'] ?? '' }
      : { kind: 'key', path: privateKeyPath, readKey: () => readFile(privateKeyPath, 'utf8') };
  const shell = openSshShell({
    host,
    port: 22,
    user,
    login,
    // The VM has just made its key. Nothing is sent that is secret.
    trust: {
      kind: 'known-hosts',
      path: '(none)',
      read: () => Promise.resolve(undefined),
      firstUse: { confirm: () => Promise.resolve(true), append: () => Promise.resolve() },
    },
    openSocket,
    clock: systemClock,
  });
  try {
    const { output, exitCode } = await shell.run({ command: 'echo ok', ...call });
    if (exitCode === 0 && output.trim() === 'ok') return;
    throw new Unreachable('SSH_UNREACHABLE', `'echo ok' answers ${JSON.stringify(output.trim())}`);
  } finally {
    await shell.close();
  }
};

const connections = () => import('./connections.ts');

function createContext(): CliContext {
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    isTerminal: { out: process.stdout.isTTY, err: process.stderr.isTTY },
    // A pseudo-terminal without a size says 0.
    columns: process.stdout.columns || undefined,
    environment: process.env,
    homeFolder: homedir(),
    workingFolder: process.cwd(),
    tempFolders: [tmpdir()],
    files: systemFiles,
    clock: systemClock,
    random: systemRandom,
    signal: abortOnSignals(),
    onHangUp,
    version: manifest.version,
    processName: PROCESS_NAME,
    adapters: {
      startProxmoxSim,
      startKubernetesSim,
      checkSshLogin,
      runInteractive,
      ask,
      connectProxmox: async (...args) => (await connections()).connectProxmox(...args),
      connectKubernetes: async (...args) => (await connections()).connectKubernetes(...args),
      openPoolObjects: async (...args) => (await connections()).openPoolObjects(...args),
      inspectProxmox: async (...args) => (await connections()).inspectProxmox(...args),
      inspectKubernetes: async (...args) => (await connections()).inspectKubernetes(...args),
      probe: async (...args) => (await connections()).probe(...args),
      startFrontEnd,
      openTelemetry,
      startHealthServer,
      startDashboard,
      async readSecret(source, cluster) {
        const { readSecret } = await connections();
        const { secret, warnings } = await readSecret(source, cluster);
        return { value: secret.reveal(), warnings };
      },
      readUrl,
      openStore,
      openOrCreateStore,
      async openKubernetesStore(...args) {
        const { openStoreInKubernetes } = await import('./kubernetes-connection.ts');
        return openStoreInKubernetes(...args);
      },
      async readMachineRecords(path) {
        const { readMachineRecords } = await import('./store/index.ts');
        return readMachineRecords(path);
      },
    },
  };
}

export async function main(): Promise<void> {
  ignoreClosedPipes();
  process.exitCode = await runCli(process.argv.slice(2), createContext());
}
