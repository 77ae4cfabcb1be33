// SPDX-License-Identifier: Apache-2.0
import { join } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { InvalidRequest } from '../ports/errors.ts';
import type { Pair } from './certs/authority.ts';
import type { CliContext, CommandHost } from './context.ts';

interface CertsOptions {
  readonly output: string;
  readonly name: readonly string[];
  readonly client: string;
  readonly port: number;
  readonly days: number;
  readonly force?: true;
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const CA_DAYS = 3_650;
const DEFAULT_NAMES = ['pvescaler.pvescaler.svc', 'pvescaler.pvescaler', 'localhost', '127.0.0.1'];

export function addCerts(parent: Command, { context }: CommandHost): void {
  parent
    .command('certs')
    .description(
      'make a CA, a server and a client certificate for the Cluster Autoscaler, and print its cloud-config',
    )
    .requiredOption('-o, --output <folder>', 'where they go; a CA that is there already is used')
    .option(
      '--name <names...>',
      'names and addresses by which the server is reached',
      DEFAULT_NAMES,
    )
    .option('--client <name>', 'name of the client, as in grpc.tls.allow', 'cluster-autoscaler')
    .option('--port <port>', 'port of grpc.listen, for the cloud-config', wholeNumber, 50_051)
    .option('--days <days>', 'how long server and client are valid', wholeNumber, 365)
    .option('--force', 'replace server and client certificates that are there')
    .action((options: CertsOptions) => makeCertificates(context, options));
}

async function makeCertificates(context: CliContext, options: CertsOptions): Promise<void> {
  const { Authority, makeAuthority } = await import('./certs/authority.ts');
  const from = context.clock.now() - HOUR_MS;
  const { name: names, client, days } = options;
  const folder = join(context.workingFolder, '.');
  const place = options.output.startsWith('/') ? options.output : join(folder, options.output);
  const known = await readPair(context, place);
  const ca = known ?? makeAuthority('pvescaler CA', { from, until: from + CA_DAYS * DAY_MS });
  const authority = new Authority(ca, { from, until: from + days * DAY_MS });
  if (known === undefined) await writePair(context, join(place, 'ca'), { pair: ca, force: false });
  const force = options.force === true;
  await writePair(context, join(place, 'server'), { pair: authority.server(names), force });
  await writePair(context, join(place, 'client'), { pair: authority.client(client), force });
  context.err(toldFiles(place, known !== undefined));
  context.out(cloudConfig(names[0] ?? 'localhost', options.port));
}

async function readPair({ files }: CliContext, place: string): Promise<Pair | undefined> {
  const [certPem, keyPem] = await Promise.all([
    files.read(join(place, 'ca.crt')),
    files.read(join(place, 'ca.key')),
  ]);
  if (certPem !== undefined && keyPem !== undefined) return { certPem, keyPem };
  if (certPem === undefined && keyPem === undefined) return undefined;
  const lacking = certPem === undefined ? 'ca.crt' : 'ca.key';
  throw new InvalidRequest('REQUEST_INVALID', `${place} has half a CA: ${lacking} is missing`);
}

async function writePair(
  { files }: CliContext,
  stem: string,
  { pair, force }: { readonly pair: Pair; readonly force: boolean },
): Promise<void> {
  for (const [path, text] of [
    [`${stem}.key`, pair.keyPem],
    [`${stem}.crt`, pair.certPem],
  ] as const) {
    const outcome = await files.write(path, text, { overwrite: force });
    if (outcome === 'written') continue;
    throw new InvalidRequest('REQUEST_INVALID', `${path} is there already`, {
      hint: 'Add --force to replace it, or name another folder.',
    });
  }
}

function toldFiles(place: string, hadAuthority: boolean): string {
  return `${hadAuthority ? 'used the CA in' : 'made a CA in'} ${place}; keep ca.key to yourself.
For the config: grpc: { tls: { cert: ${place}/server.crt, key: ${place}/server.key, clientCa: ${place}/ca.crt } }
The autoscaler's cloud-config, with ca.crt, client.crt and client.key mounted at /etc/pvescaler:
`;
}

/** The autoscaler decides for TLS by `cert` alone; without it, it would speak plaintext silently. */
function cloudConfig(host: string, port: number): string {
  const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  return `address: "${address}"
cert: /etc/pvescaler/client.crt
key: /etc/pvescaler/client.key
cacert: /etc/pvescaler/ca.crt
grpc_timeout: 15s
`;
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0 && value < 100_000) return value;
  throw new InvalidArgumentError('is not a whole number above 0');
}
