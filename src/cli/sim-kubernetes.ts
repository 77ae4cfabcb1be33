// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { InvalidRequest } from '../ports/errors.ts';
import type { CliContext, CommandHost } from './context.ts';

interface SimOptions {
  readonly listen: string;
  readonly kubeconfigOut?: string;
  readonly fakeNodes: string;
  readonly json?: true;
}

const MAX_FAKE_NODES = 1_000;
const IDLE_MS = 3_600_000;

export function addSimKubernetes(parent: Command, host: CommandHost): void {
  parent
    .command('kubernetes')
    .description('run a simulated Kubernetes cluster with controllers and a scheduler')
    .option(
      '--listen <address>',
      'address as host:port; port 0 takes any free port',
      '127.0.0.1:6443',
    )
    .option('--kubeconfig-out <file>', "write an administrator's kubeconfig to this file")
    .option('--fake-nodes <number>', 'number of nodes without a machine', '0')
    .option('--json', 'print URL and hash of the CA as JSON')
    .action((options: SimOptions) => runSimulator(host.context, options));
}

async function runSimulator(context: CliContext, options: SimOptions): Promise<void> {
  const { kubeconfigOut } = options;
  const sim = await context.adapters.startKubernetesSim({
    listen: options.listen,
    fakeNodes: parseCount(options.fakeNodes),
  });
  try {
    if (kubeconfigOut !== undefined) {
      await context.files.write(kubeconfigOut, sim.kubeconfig, { overwrite: true });
    }
    announce(context, sim, options);
    const { clock, signal } = context;
    while (!signal.aborted) await clock.sleep(IDLE_MS, { signal }).catch(() => undefined);
  } finally {
    await sim.close();
  }
  context.err('The simulated Kubernetes cluster has stopped.\n');
}

function announce(
  context: CliContext,
  { url, caCertHash }: { readonly url: string; readonly caCertHash: string },
  { json, kubeconfigOut }: SimOptions,
): void {
  if (json === true) {
    context.out(`${JSON.stringify({ url, caCertHash })}\n`);
    return;
  }
  context.out(
    [
      `Kubernetes, simulated: ${url}`,
      `CA           ${caCertHash}`,
      kubeconfigOut === undefined
        ? 'kubeconfig   none; set a file with --kubeconfig-out'
        : `kubeconfig   ${kubeconfigOut}`,
      'Ctrl-C stops it.',
      '',
    ].join('\n'),
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
