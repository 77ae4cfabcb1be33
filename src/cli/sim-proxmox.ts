// SPDX-License-Identifier: Apache-2.0
import { type Command, Option } from 'commander';
import { InvalidConfig, InvalidRequest } from '../ports/errors.ts';
import type { CliContext, CommandHost, RunningSim } from './context.ts';

interface SimOptions {
  readonly hosts?: string;
  readonly cluster?: string;
  readonly listen: string;
  readonly tls?: true;
  readonly speed: string;
  readonly state?: string;
  readonly version?: '8.4' | '9.2';
  readonly json?: true;
}

const MOST_HOSTS = 100;
/** A crash loses at most this much of a simulated site. */
const SAVE_EVERY_MS = 5_000;

export function addSimProxmox(parent: Command, host: CommandHost): void {
  parent
    .command('proxmox')
    .description('a simulated Proxmox VE cluster with the real API, for trying things out')
    .addOption(new Option('--hosts <number>', 'so many hosts, made up').conflicts('cluster'))
    .addOption(new Option('--cluster <file>', 'the site described in this YAML file'))
    .option('--listen <address>', 'host:port; port 0 = any free one', '127.0.0.1:8006')
    .option('--tls', 'HTTPS with a certificate made on the spot, as the real one has')
    .option('--speed <factor>', 'how much faster than a real one', '1')
    .option('--state <file>', 'go on from this file, and keep it up to date')
    .addOption(new Option('--version <version>', 'which one to be').choices(['8.4', '9.2']))
    .option('--json', 'print address and fingerprint as JSON')
    .action((options: SimOptions) => run(host.context, options));
}

async function run(context: CliContext, options: SimOptions): Promise<void> {
  const { cluster, state } = options;
  const saved = state === undefined ? undefined : await context.files.read(state);
  const sim = await context.adapters.startProxmoxSim({
    hosts: wholeNumber('--hosts', options.hosts ?? '3', MOST_HOSTS),
    speed: positive('--speed', options.speed),
    listen: options.listen,
    tls: options.tls === true,
    ...(cluster !== undefined && {
      cluster: { path: cluster, text: await readCluster(context, cluster) },
    }),
    ...(options.version !== undefined && { version: options.version }),
    ...(saved !== undefined && { state: saved }),
  });
  announce(context, sim, options);
  await runUntilAsked(context, sim, state);
}

async function runUntilAsked(
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
  context.err('The simulated Proxmox has stopped.\n');
}

function announce(context: CliContext, sim: RunningSim, options: SimOptions): void {
  const { url, fingerprint, hosts, version, credentials } = sim;
  if (options.json === true) {
    context.out(`${JSON.stringify({ url, fingerprint, hosts, version })}\n`);
    return;
  }
  context.out(
    [
      `Proxmox VE ${version}, simulated: ${url}/api2/json`,
      `hosts        ${hosts.join(', ')}`,
      ...(fingerprint === undefined ? [] : [`fingerprint  ${fingerprint}`]),
      ...credentials.map((line) => `log in       ${line}`),
      'Ctrl-C stops it.',
      '',
    ].join('\n'),
  );
}

async function readCluster(context: CliContext, path: string): Promise<string> {
  const text = await context.files.read(path);
  if (text !== undefined) return text;
  throw new InvalidConfig('CONFIG_UNREADABLE', `${path} does not exist`, {
    hint: 'Name a cluster file; docs/reference/simulated-cluster.md describes its form.',
  });
}

function positive(flag: string, text: string): number {
  const number = Number(text);
  if (text.trim() !== '' && Number.isFinite(number) && number > 0) return number;
  throw new InvalidRequest('USAGE', `${flag} takes a number above 0, not '${text}'`);
}

function wholeNumber(flag: string, text: string, most: number): number {
  const number = Number(text);
  if (Number.isInteger(number) && number >= 1 && number <= most) return number;
  throw new InvalidRequest(
    'USAGE',
    `${flag} takes a whole number from 1 to ${most}, not '${text}'`,
  );
}
