// SPDX-License-Identifier: Apache-2.0
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { CommandHost } from './context.ts';
import type { CertsOptions } from './run-certs.ts';
import { parseFileName } from './write-result.ts';

const DEFAULT_NAMES = ['pvescaler.pvescaler.svc', 'pvescaler.pvescaler', 'localhost', '127.0.0.1'];

export function addCerts(parent: Command, { context }: CommandHost): void {
  parent
    .command('certs')
    .description(
      'create certificates for the gRPC server and the Cluster Autoscaler, and print its cloud-config',
    )
    .requiredOption(
      '-o, --output <folder>',
      'folder for the files; a CA in it is reused',
      parseFileName,
    )
    .addOption(
      new Option('--name <names...>', 'host names and addresses of the server').default(
        DEFAULT_NAMES,
        DEFAULT_NAMES.join(' '),
      ),
    )
    .option('--client <name>', 'name of the client, as in grpc.tls.allow', 'cluster-autoscaler')
    .option('--port <port>', 'port of grpc.listen, for the cloud-config', parseWholeNumber, 50_051)
    .option(
      '--days <days>',
      'validity of the server and client certificates',
      parseWholeNumber,
      365,
    )
    .option('--force', 'replace existing server and client certificates')
    .action(async (options: CertsOptions) => {
      const { createCertificates } = await import('./run-certs.ts');
      await createCertificates(context, options);
    });
}

function parseWholeNumber(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0 && value < 100_000) return value;
  throw new InvalidArgumentError('It is not a whole number above 0.');
}
