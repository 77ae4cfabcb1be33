// SPDX-License-Identifier: Apache-2.0
import { Bug } from '../../ports/errors.ts';
import type { RegionFile } from '../schema/index.ts';
import type { SecretSource } from '../secrets/secret-source.ts';
import { parseVmIdRange } from '../values/vm-id-range.ts';
import {
  type BuildContext,
  omit,
  toKubernetesSecretSource,
  toMs,
  toOptionalPath,
  toSecretSource,
  unwrapParsed,
} from './convert.ts';
import { resolvePath } from './resolve-path.ts';

export type RegionLogin =
  | { readonly kind: 'token'; readonly id: string | SecretSource; readonly secret: SecretSource }
  | { readonly kind: 'password'; readonly user: string; readonly password: SecretSource }
  /** SSH transport needs no Proxmox login. */
  | { readonly kind: 'none' };

const CONVERTED_KEYS = [
  'endpoints',
  'token',
  'user',
  'passwordFile',
  'passwordEnv',
  'passwordRef',
  'tls',
  'transport',
  'managedTag',
  'requestTimeout',
  'taskTimeout',
] as const;

/** The region that other folders receive. Keys without a conversion pass through. */
export function buildRegion(name: string, region: RegionFile, context: BuildContext) {
  return {
    ...omit(region, CONVERTED_KEYS),
    name,
    endpoints: region.endpoints.map((text) => new URL(text).origin),
    login: buildLogin(region, context),
    tls: {
      caPath: toOptionalPath(region.tls.caFile, context),
      fingerprints: region.tls.fingerprints.map((text) => text.replaceAll(':', '').toUpperCase()),
      insecure: region.tls.insecure,
    },
    transport: buildTransport(region, context),
    requestTimeoutMs: toMs(region.requestTimeout),
    vmIds: unwrapParsed(parseVmIdRange(region.vmIds)),
    storage: { ...region.storage, disks: [region.storage.disks].flat() },
    /** The managed tag first. For people and lists; tags prove no ownership. */
    tags: [region.managedTag, ...region.tags],
    taskTimeoutMs: toMs(region.taskTimeout),
  };
}

function buildLogin(region: RegionFile, context: BuildContext): RegionLogin {
  const { token, user } = region;
  if (token !== undefined) {
    const id =
      token.id ?? (token.idRef === undefined ? '' : toKubernetesSecretSource(token.idRef, context));
    return { kind: 'token', id, secret: buildTokenSecret(token, context) };
  }
  const password = toSecretSource(
    { file: region.passwordFile, env: region.passwordEnv, ref: region.passwordRef },
    context,
  );
  return user === undefined || password === undefined
    ? { kind: 'none' }
    : { kind: 'password', user, password };
}

function buildTokenSecret(
  token: NonNullable<RegionFile['token']>,
  context: BuildContext,
): SecretSource {
  const secret = toSecretSource(
    { file: token.secretFile, env: token.secretEnv, ref: token.secretRef },
    context,
  );
  if (secret === undefined) throw new Bug('BUG', 'a token without a secret passed validation');
  return secret;
}

function buildTransport({ transport }: RegionFile, context: BuildContext) {
  if (transport === 'rest') return { kind: 'rest' as const };
  const { ssh } = transport;
  return {
    kind: 'ssh' as const,
    user: ssh.user,
    hosts: ssh.hosts.map((text) => parseSshHost(text, ssh.port)),
    login:
      ssh.privateKeyFile === undefined
        ? { kind: 'agent' as const }
        : {
            kind: 'key' as const,
            path: resolvePath(ssh.privateKeyFile, context.folders),
            passphrase: toSecretSource(
              { file: ssh.passphraseFile, env: ssh.passphraseEnv, ref: ssh.passphraseRef },
              context,
            ),
          },
    trust:
      ssh.hostKeys.length > 0
        ? { kind: 'fingerprints' as const, fingerprints: ssh.hostKeys }
        : {
            kind: 'known-hosts' as const,
            path: resolvePath(ssh.knownHosts ?? '~/.ssh/known_hosts', context.folders),
          },
  };
}

/** `pve1`, `pve1:2222`, `2001:db8::1` or `[2001:db8::1]:2222`. */
function parseSshHost(text: string, port: number) {
  const [, bracketed, plain, given] = /^(?:\[(.+)\]|([^:]+)):(\d+)$/.exec(text) ?? [];
  const hostname = bracketed ?? plain;
  return hostname === undefined ? { hostname: text, port } : { hostname, port: Number(given) };
}
