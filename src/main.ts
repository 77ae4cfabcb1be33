// SPDX-License-Identifier: Apache-2.0
// The composition root: the only file that knows the process and every adapter. Adapters are imported when
// a command asks for them, so that `--help` does not pay for SQLite or an HTTP client.
import { access, mkdir, readFile, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { dirname } from 'node:path';
import manifest from '../package.json' with { type: 'json' };
import { type CliContext, type ProxmoxSimOrder, type RunningSim, runCli } from './cli/index.ts';
import { InvalidConfig, InvalidRequest, StoreUnusable } from './ports/errors.ts';
import type { ProxmoxSim, SimState } from './sim/proxmox/index.ts';
import { systemClock, systemRandom } from './system/index.ts';

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
    sim.loadState(JSON.parse(text) as SimState);
  } catch (cause) {
    throw new InvalidConfig('CONFIG_INVALID', 'the state file is not one of this simulator', {
      hint: 'Name another file by --state, or move this one away to begin anew.',
      cause,
    });
  }
}

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
    adapters: {
      startProxmoxSim,
      async openStore(path) {
        const { fileSystemWarnings, openSqliteStore } = await import('./store/index.ts');
        await access(path).catch((cause: unknown) => {
          throw new StoreUnusable('STORE_UNREADABLE', `there is no state database at ${path}`, {
            cause,
          });
        });
        const store = await openSqliteStore({ path, clock: systemClock, random: systemRandom });
        return { store, warnings: await fileSystemWarnings(path) };
      },
    },
  };
}

export async function main(): Promise<void> {
  bearClosedPipes();
  process.exitCode = await runCli(process.argv.slice(2), contextOfThisProcess());
}
