// SPDX-License-Identifier: Apache-2.0
import { join, resolve } from 'node:path';
import type { CertificatePair } from '../certs/index.ts';
import { InvalidRequest } from '../ports/errors.ts';
import type { CliContext } from './context.ts';

export interface CertsOptions {
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
export async function createCertificates(
  context: CliContext,
  options: CertsOptions,
): Promise<void> {
  const { CertificateAuthority, createAuthority } = await import('../certs/index.ts');
  const notBefore = context.clock.now() - HOUR_MS;
  const { name: names, client, days } = options;
  const folder = resolve(context.workingFolder, options.output);
  const existing = await readPair(context, folder);
  const ca =
    existing ??
    createAuthority('pvescaler CA', { notBefore, notAfter: notBefore + CA_DAYS * DAY_MS });
  const authority = new CertificateAuthority(ca, {
    notBefore,
    notAfter: notBefore + days * DAY_MS,
  });
  if (existing === undefined)
    await writePair(context, join(folder, 'ca'), { pair: ca, force: false });
  const force = options.force === true;
  await writePair(context, join(folder, 'server'), { pair: authority.issueServer(names), force });
  await writePair(context, join(folder, 'client'), { pair: authority.issueClient(client), force });
  context.err(describeFiles(folder, existing !== undefined));
  context.out(cloudConfig(names[0] ?? 'localhost', options.port));
}

async function readPair(
  { files }: CliContext,
  folder: string,
): Promise<CertificatePair | undefined> {
  const [certPem, keyPem] = await Promise.all([
    files.read(join(folder, 'ca.crt')),
    files.read(join(folder, 'ca.key')),
  ]);
  if (certPem !== undefined && keyPem !== undefined) return { certPem, keyPem };
  if (certPem === undefined && keyPem === undefined) return undefined;
  const missing = certPem === undefined ? 'ca.crt' : 'ca.key';
  throw new InvalidRequest(
    'REQUEST_INVALID',
    `${folder} has an incomplete CA: ${missing} does not exist`,
    {
      hint: 'Restore the file, or delete the other one to create a new CA.',
    },
  );
}

async function writePair(
  { files }: CliContext,
  stem: string,
  { pair, force }: { readonly pair: CertificatePair; readonly force: boolean },
): Promise<void> {
  for (const [path, text] of [
    [`${stem}.key`, pair.keyPem],
    [`${stem}.crt`, pair.certPem],
  ] as const) {
    const outcome = await files.write(path, text, { overwrite: force });
    if (outcome === 'written') continue;
    throw new InvalidRequest('REQUEST_INVALID', `${path} already exists`, {
      hint: 'Add --force to replace it, or choose another folder.',
    });
  }
}

function describeFiles(folder: string, hadCa: boolean): string {
  return `${hadCa ? 'Used the CA in' : 'Created a CA in'} ${folder}; keep ca.key secret.
In the config, on this machine: grpc: { tls: { cert: ${folder}/server.crt, key: ${folder}/server.key, clientCa: ${folder}/ca.crt } }
For the manifests in deploy/:
  kubectl -n pvescaler create secret generic pvescaler-server-tls --from-file=tls.crt=${folder}/server.crt --from-file=tls.key=${folder}/server.key --from-file=ca.crt=${folder}/ca.crt
  kubectl -n pvescaler create secret generic cluster-autoscaler-client-tls --from-file=tls.crt=${folder}/client.crt --from-file=tls.key=${folder}/client.key --from-file=ca.crt=${folder}/ca.crt
Cloud-config of the Cluster Autoscaler, with the second Secret mounted at /etc/cluster-autoscaler/tls:
`;
}

/** The Cluster Autoscaler uses TLS only if `cert` is set; without it, it silently uses plaintext. */
function cloudConfig(host: string, port: number): string {
  const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  return `address: "${address}"
cert: /etc/cluster-autoscaler/tls/tls.crt
key: /etc/cluster-autoscaler/tls/tls.key
cacert: /etc/cluster-autoscaler/tls/ca.crt
grpc_timeout: 15s
`;
}
