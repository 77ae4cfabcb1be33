// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { InvalidRequest } from '../ports/errors.ts';
import type { CommandHost } from './context.ts';
import { type OutputOptions, withOutputOption } from './output-option.ts';
import { parseListenAddress } from './parse-listen-address.ts';
import { printObjects } from './print-objects.ts';

interface SimOptions extends OutputOptions {
  readonly listen: string;
  readonly kubeconfigOut?: string;
  readonly fakeNodes: string;
}

const MAX_FAKE_NODES = 1_000;
const IDLE_MS = 3_600_000;

export function addSimKubernetes(parent: Command, host: CommandHost): void {
  const command = parent
    .command('kubernetes')
    .description('run a simulated Kubernetes cluster with controllers and a scheduler')
    .option(
      '--listen <address>',
      'address as host:port; port 0 takes any free port',
      parseListenAddress,
      '127.0.0.1:6443',
    )
    .option('--kubeconfig-out <file>', "write an administrator's kubeconfig to this file")
    .option('--fake-nodes <number>', 'number of nodes without a machine', '0');
  withOutputOption(command).action((options: SimOptions) => runSimulator(host, options));
}

async function runSimulator(host: CommandHost, options: SimOptions): Promise<void> {
  const { context } = host;
  const { kubeconfigOut } = options;
  const sim = await context.adapters.startKubernetesSim({
    listen: options.listen,
    fakeNodes: parseCount(options.fakeNodes),
  });
  try {
    if (kubeconfigOut !== undefined) {
      await context.files.write(kubeconfigOut, sim.kubeconfig, { overwrite: true });
    }
    await announce(host, sim, options);
    const { clock, signal } = context;
    while (!signal.aborted) await clock.sleep(IDLE_MS, { signal }).catch(() => undefined);
  } finally {
    await sim.close();
  }
  context.err('The simulated Kubernetes cluster has stopped.\n');
}

async function announce(
  host: CommandHost,
  { url, caCertHash }: { readonly url: string; readonly caCertHash: string },
  { output, kubeconfigOut }: SimOptions,
): Promise<void> {
  const lines = [
    `Kubernetes, simulated: ${url}`,
    `CA           ${caCertHash}`,
    kubeconfigOut === undefined
      ? 'kubeconfig   none; set a file with --kubeconfig-out'
      : `kubeconfig   ${kubeconfigOut}`,
    'Ctrl-C stops it.',
    '',
  ];
  await printObjects(
    host,
    { output },
    {
      value: { url, caCertHash },
      isStream: true,
      names: [url],
      text: () => lines.join('\n'),
    },
  );
}

function parseCount(text: string): number {
  const number = Number(text);
  if (text.trim() !== '' && Number.isInteger(number) && number >= 0 && number <= MAX_FAKE_NODES) {
    return number;
  }
  const range = `a whole number from 0 to ${MAX_FAKE_NODES}`;
  throw new InvalidRequest('USAGE', `--fake-nodes takes ${range}, not '${text}'`);
}
