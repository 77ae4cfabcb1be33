// SPDX-License-Identifier: Apache-2.0
import { type Command, Option } from 'commander';
import { InvalidConfig, InvalidRequest } from '../ports/errors.ts';
import type { CliContext, CommandHost, RunningSim } from './context.ts';
import { type OutputOptions, withOutputOption } from './output-option.ts';
import { parseListenAddress } from './parse-listen-address.ts';
import { printObjects } from './print-objects.ts';

interface SimOptions extends OutputOptions {
  readonly hosts?: string;
  readonly cluster?: string;
  readonly listen: string;
  readonly tls?: true;
  readonly sshKey?: string;
  readonly sshListen: string;
  readonly speed: string;
  readonly state?: string;
  readonly version?: '8.4' | '9.2';
}

const MAX_HOSTS = 100;
/** A crash loses at most this much of the simulated state. */
const SAVE_EVERY_MS = 5_000;

export function addSimProxmox(parent: Command, host: CommandHost): void {
  const command = parent
    .command('proxmox')
    .description('run a simulated Proxmox VE cluster with the API of the real one')
    .addOption(
      new Option('--hosts <number>', 'number of hosts of a default cluster').conflicts('cluster'),
    )
    .addOption(new Option('--cluster <file>', 'cluster description, a YAML file'))
    .option(
      '--listen <address>',
      'address as host:port; port 0 takes any free port',
      parseListenAddress,
      '127.0.0.1:8006',
    )
    .option('--tls', 'serve HTTPS with a new self-signed certificate')
    .option(
      '--ssh-key <file>',
      'serve SSH on each host, with pvesh and qm, for root with this public key',
    )
    .option(
      '--ssh-listen <address>',
      'SSH address of the first host; the others take the next ports',
      parseListenAddress,
      '127.0.0.1:0',
    )
    .option('--speed <factor>', 'factor by which it is faster than real Proxmox VE', '1')
    .option('--state <file>', 'load this file at the start, and save to it')
    .addOption(
      new Option('--version <version>', 'Proxmox VE version to simulate').choices(['8.4', '9.2']),
    );
  withOutputOption(command).action((options: SimOptions) => runSimulator(host, options));
}

async function runSimulator(host: CommandHost, options: SimOptions): Promise<void> {
  const { context } = host;
  const { cluster, state, sshKey } = options;
  const saved = state === undefined ? undefined : await context.files.read(state);
  const sim = await context.adapters.startProxmoxSim({
    hosts: parseWholeNumber('--hosts', options.hosts ?? '3', MAX_HOSTS),
    speed: parsePositive('--speed', options.speed),
    listen: options.listen,
    tls: options.tls === true,
    ...(sshKey !== undefined && {
      ssh: { listen: options.sshListen, authorizedKeys: await readSshKey(context, sshKey) },
    }),
    ...(cluster !== undefined && {
      cluster: { path: cluster, text: await readCluster(context, cluster) },
    }),
    ...(options.version !== undefined && { version: options.version }),
    ...(saved !== undefined && { state: saved }),
  });
  await announce(host, sim, options);
  await saveUntilStopped(context, sim, state);
}

async function saveUntilStopped(
  context: CliContext,
  sim: RunningSim,
  state: string | undefined,
): Promise<void> {
  const { clock, files, signal } = context;
  try {
    while (!signal.aborted) {
      await clock.sleep(SAVE_EVERY_MS, { signal }).catch(() => undefined);
      if (state !== undefined) await files.write(state, sim.saveState(), { overwrite: true });
    }
  } finally {
    await sim.close();
  }
  context.err('The simulated Proxmox VE has stopped.\n');
}

async function announce(host: CommandHost, sim: RunningSim, options: SimOptions): Promise<void> {
  const { url, fingerprint, hosts, version, credentials, ssh } = sim;
  const lines = [
    `Proxmox VE ${version}, simulated: ${url}/api2/json`,
    `hosts        ${hosts.join(', ')}`,
    ...(fingerprint === undefined ? [] : [`fingerprint  ${fingerprint}`]),
    ...(ssh ?? []).map(
      ({ host: name, address, fingerprint: key }) => `ssh          ${name} ${address} ${key}`,
    ),
    ...credentials.map((line) => `log in       ${line}`),
    'Ctrl-C stops it.',
    '',
  ];
  await printObjects(host, options, {
    value: { url, fingerprint, hosts, version, ssh },
    isStream: true,
    names: hosts,
    text: () => lines.join('\n'),
  });
}

async function readCluster(context: CliContext, path: string): Promise<string> {
  const text = await context.files.read(path);
  if (text !== undefined) return text;
  throw new InvalidConfig('CONFIG_UNREADABLE', `cluster description ${path} does not exist`, {
    hint: 'See docs/reference/simulated-cluster.md for its format.',
  });
}

async function readSshKey(context: CliContext, path: string): Promise<string> {
  const text = await context.files.read(path);
  if (text !== undefined && /^\S+ [A-Za-z0-9+/=]+/m.test(text)) return text;
  throw new InvalidRequest(
    'USAGE',
    `--ssh-key takes a public key in the format of OpenSSH, which ${path} is not`,
  );
}

function parsePositive(flag: string, text: string): number {
  const number = Number(text);
  if (text.trim() !== '' && Number.isFinite(number) && number > 0) return number;
  throw new InvalidRequest('USAGE', `${flag} takes a number above 0, not '${text}'`);
}

function parseWholeNumber(flag: string, text: string, max: number): number {
  const number = Number(text);
  if (Number.isInteger(number) && number >= 1 && number <= max) return number;
  throw new InvalidRequest('USAGE', `${flag} takes a whole number from 1 to ${max}, not '${text}'`);
}
