// SPDX-License-Identifier: Apache-2.0
// Secrets and files that the config names.
import { X509Certificate } from 'node:crypto';
import type { Config, SecretSource } from '../config/index.ts';
import { type Check, failure, type Outcome, ok, skipped, warning } from './check.ts';
import type { DoctorContext } from './context.ts';

const GROUP = 'config';
const DAY_MS = 24 * 3_600_000;
const EXPIRES_SOON_MS = 14 * DAY_MS;

interface NamedSecret {
  /** The key of the config. */
  readonly subject: string;
  readonly source: SecretSource;
}

export function secretChecks(
  { adapters }: DoctorContext,
  config: Config,
  readsKubernetes: boolean,
): readonly Check[] {
  return listSecrets(config).map(({ subject, source }) => ({
    name: 'secret',
    group: GROUP,
    subject,
    run: async () => {
      if (source.kind === 'kubernetes' && !readsKubernetes) return skipped('it is in Kubernetes');
      const { warnings } = await adapters.readSecret(source, config.cluster);
      const [first] = warnings;
      return first === undefined ? ok(describe(source)) : asWarning(first);
    },
  }));
}

/** `secret file X is readable by every user of this machine; run chmod 600 on it`. */
function asWarning(text: string): Outcome {
  const [cause = text, fix = 'Restrict who can read it.'] = text.split('; ');
  return warning(cause, `${fix.charAt(0).toUpperCase()}${fix.slice(1)}.`);
}

function describe(source: SecretSource): string {
  if (source.kind === 'file') return 'the file is readable';
  return source.kind === 'environment' ? 'the variable is set' : 'the Secret is readable';
}

function listSecrets({ http, regions, join, pools }: Config): readonly NamedSecret[] {
  const path = http.dashboard === undefined ? undefined : http.dashboardTokenFile;
  const dashboard: NamedSource = [
    'http.dashboardTokenFile',
    path === undefined ? undefined : { kind: 'file', path },
  ];
  const logins = Object.values(regions).flatMap(({ name, login, transport }) => {
    const prefix = `proxmox.${name}`;
    const sources: NamedSource[] = [
      [`${prefix}.token.id`, login.kind === 'token' ? login.id : undefined],
      [`${prefix}.token`, login.kind === 'token' ? login.secret : undefined],
      [`${prefix}.password`, login.kind === 'password' ? login.password : undefined],
      ...sshSecrets(prefix, transport),
    ];
    return sources;
  });
  const tokens = Object.entries(join).map(([kind, recipe]) => {
    const isUsed = pools.some((pool) => pool.join === kind);
    const source = recipe?.token.kind === 'static' && isUsed ? recipe.token.source : undefined;
    return [`join.${kind}.token`, source] as const;
  });
  return [dashboard, ...logins, ...tokens].flatMap(([subject, source]) =>
    source === undefined || typeof source === 'string' ? [] : [{ subject, source }],
  );
}

type NamedSource = readonly [string, SecretSource | string | undefined];

function sshSecrets(
  prefix: string,
  transport: Config['regions'][string]['transport'],
): readonly NamedSource[] {
  if (transport.kind === 'rest' || transport.login.kind === 'agent') return [];
  const { path, passphrase } = transport.login;
  return [
    [`${prefix}.transport.ssh.privateKeyFile`, { kind: 'file', path }],
    [`${prefix}.transport.ssh.passphrase`, passphrase],
  ];
}

interface NamedFile {
  readonly subject: string;
  readonly path: string;
  /** A certificate whose expiry is checked. */
  readonly isCertificate?: boolean;
}

export function fileChecks({ files, clock }: DoctorContext, config: Config): readonly Check[] {
  return listFiles(config).map((file) => ({
    name: 'file',
    group: GROUP,
    subject: file.subject,
    run: async () => {
      const fix = `Correct ${file.subject}, or create the file for the user that runs pvescaler.`;
      const text = await files
        .read(file.path)
        .catch((error: unknown) => failure(`${file.path} cannot be read: ${String(error)}`, fix));
      if (typeof text === 'object') return text;
      if (text === undefined) return failure(`${file.path} does not exist`, fix);
      return file.isCertificate === true ? checkCertificate(text, clock.now()) : ok(file.path);
    },
  }));
}

function checkCertificate(pem: string, now: number): Outcome {
  const fix = 'Create a new one, with pvescaler certs for example.';
  try {
    const { validTo } = new X509Certificate(pem);
    const left = Date.parse(validTo) - now;
    if (left <= 0) return failure(`the certificate expired on ${validTo}`, fix);
    if (left < EXPIRES_SOON_MS) return warning(`the certificate expires on ${validTo}`, fix);
    return ok(`valid until ${validTo}`);
  } catch {
    return failure('the file contains no certificate in PEM form', fix);
  }
}

function listFiles(config: Config): readonly NamedFile[] {
  const { cluster, grpc, mode, regions, ssh } = config;
  const files: (NamedFile | undefined)[] = [
    optional('cluster.kubeconfig', cluster.kubeconfigPath),
    ...Object.values(regions).map(({ name, tls }) =>
      optional(`proxmox.${name}.tls.caFile`, tls.caPath, true),
    ),
    ...ssh.publicKeyPaths.map((path) => ({ subject: 'ssh.publicKeyFiles', path })),
    ...(mode === 'externalgrpc' && grpc.tls !== undefined
      ? [
          optional('grpc.tls.cert', grpc.tls.certPath, true),
          optional('grpc.tls.key', grpc.tls.keyPath),
          optional('grpc.tls.clientCa', grpc.tls.clientCaPath, true),
        ]
      : []),
    ...listJoinFiles(config),
  ];
  return files.filter((file) => file !== undefined);
}

function listJoinFiles({ join, pools }: Config): readonly (NamedFile | undefined)[] {
  return Object.entries(join).flatMap(([kind, recipe]) => {
    if (recipe === undefined || !pools.some((pool) => pool.join === kind)) return [];
    const prefix = `join.${kind}`;
    return [
      optional(`${prefix}.cloudConfigFile`, recipe.cloudConfigPath),
      'registriesPath' in recipe
        ? optional(`${prefix}.registriesFile`, recipe.registriesPath)
        : undefined,
      'scriptPath' in recipe ? optional(`${prefix}.scriptFile`, recipe.scriptPath) : undefined,
      ...recipe.files.map((file) => optional(`${prefix}.files`, file.contentPath)),
    ];
  });
}

function optional(
  subject: string,
  path: string | undefined,
  isCertificate = false,
): NamedFile | undefined {
  return path === undefined ? undefined : { subject, path, isCertificate };
}
