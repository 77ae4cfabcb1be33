// SPDX-License-Identifier: Apache-2.0
// A region has endpoints, exactly one login method, and a consistent TLS configuration.
import type { ConfigPath } from '../config-path.ts';
import { errorAt, errorAtKey, type Finding, warningAt } from '../issues/finding.ts';
import type { ConfigFile, RegionFile } from '../schema/index.ts';
import { quoteKey } from '../secrets/detect-secret.ts';
import { checkSecretSource } from './secret-source.ts';

export function checkRegions(file: ConfigFile): readonly Finding[] {
  return [
    ...Object.entries(file.proxmox).flatMap(([name, region]) => {
      const path = ['proxmox', name];
      return [
        ...checkTransport(path, region),
        ...checkLogin(path, region),
        ...checkTls(path, region),
        ...checkRegionHosts(path, region),
      ];
    }),
    ...checkSharedEndpoints(file),
  ];
}

function checkTransport(path: ConfigPath, region: RegionFile): readonly Finding[] {
  if (region.transport === 'rest') {
    return region.endpoints.length === 0
      ? [errorAt(path, "needs 'endpoints' with at least one URL, https://host:8006")]
      : findDuplicateIndexes(region.endpoints.map(endpointOrigin)).map((index) =>
          errorAt([...path, 'endpoints', index], 'appears twice in the list'),
        );
  }
  return checkSsh([...path, 'transport', 'ssh'], region.transport.ssh);
}

type SshFile = Exclude<RegionFile['transport'], 'rest'>['ssh'];

function checkSsh(sshPath: ConfigPath, ssh: SshFile): readonly Finding[] {
  return [
    ...checkSshLogin(sshPath, ssh),
    ...(ssh.knownHosts !== undefined && ssh.hostKeys.length > 0
      ? [
          errorAtKey(
            [...sshPath, 'hostKeys'],
            "cannot be combined with 'knownHosts'; keep only one of them",
          ),
        ]
      : []),
    ...findDuplicateIndexes(ssh.hosts).map((index) =>
      errorAt([...sshPath, 'hosts', index], 'appears twice in the list'),
    ),
    ...(ssh.hosts.length === 0
      ? [errorAt(sshPath, "needs 'hosts', here or as 'hosts.allow' of the region")]
      : []),
    ...checkSecretSource(sshPath, ssh, { prefix: 'passphrase', isNeeded: false }),
  ];
}

function checkSshLogin(sshPath: ConfigPath, ssh: SshFile): readonly Finding[] {
  const { privateKeyFile, agent } = ssh;
  if (privateKeyFile === undefined && !agent)
    return [errorAt(sshPath, "needs 'privateKeyFile', or 'agent: true'")];
  if (privateKeyFile === undefined || !agent) return [];
  return [
    errorAtKey(
      [...sshPath, 'agent'],
      "cannot be combined with 'privateKeyFile'; keep only one of them",
    ),
  ];
}

function checkLogin(path: ConfigPath, region: RegionFile): readonly Finding[] {
  const { token, user } = region;
  const password = checkSecretSource(path, region, {
    prefix: 'password',
    isNeeded: user !== undefined,
  });
  if (token !== undefined && user !== undefined) {
    return [
      errorAtKey([...path, 'user'], "cannot be combined with 'token'; keep only one of them"),
    ];
  }
  if (token !== undefined) {
    return [...checkToken([...path, 'token'], token), ...checkNoPassword(path, region)];
  }
  if (user === undefined && region.transport === 'rest') {
    return [errorAt(path, "has no credentials; set 'token', or 'user' and 'passwordFile'")];
  }
  return password;
}

function checkNoPassword(path: ConfigPath, region: RegionFile): readonly Finding[] {
  const passwordKeys = (['passwordFile', 'passwordEnv', 'passwordRef'] as const).filter(
    (key) => region[key] !== undefined,
  );
  return passwordKeys.map((key) =>
    errorAtKey([...path, key], "has no effect together with 'token'; keep only one of them"),
  );
}

function checkToken(path: ConfigPath, token: NonNullable<RegionFile['token']>): readonly Finding[] {
  const id: Finding[] = [];
  if (token.id === undefined && token.idRef === undefined) {
    id.push(errorAt(path, "needs 'id' in the form user@realm!name"));
  }
  if (token.id !== undefined && token.idRef !== undefined) {
    id.push(errorAtKey([...path, 'idRef'], "cannot be combined with 'id'; keep only one of them"));
  }
  return [...id, ...checkSecretSource(path, token, { prefix: 'secret', isNeeded: true })];
}

function checkTls(path: ConfigPath, { tls, transport }: RegionFile): readonly Finding[] {
  const tlsPath = [...path, 'tls'];
  if (!tls.insecure) return [];
  const trust = ['caFile', 'fingerprints'] as const;
  const contradicted = trust.filter((key) =>
    key === 'caFile' ? tls.caFile !== undefined : tls.fingerprints.length > 0,
  );
  return [
    ...contradicted.map((key) =>
      errorAtKey(
        [...tlsPath, key],
        "has no effect together with 'insecure: true'; keep only one of them",
      ),
    ),
    ...(transport === 'rest'
      ? [
          warningAt(
            [...tlsPath, 'insecure'],
            'the API certificate is not verified, so any server can receive the credentials; set caFile or fingerprints instead',
          ),
        ]
      : []),
  ];
}

function checkRegionHosts(path: ConfigPath, { hosts }: RegionFile): readonly Finding[] {
  return hosts.deny.flatMap((host, index) =>
    hosts.allow.includes(host)
      ? [errorAt([...path, 'hosts', 'deny', index], `host ${quoteKey(host)} is also in 'allow'`)]
      : [],
  );
}

/** Two regions with the same endpoint are the same Proxmox cluster: every machine would be counted twice. */
function checkSharedEndpoints(file: ConfigFile): readonly Finding[] {
  const seen = new Map<string, string>();
  return Object.entries(file.proxmox).flatMap(([name, region]) =>
    region.endpoints.flatMap((text, index) => {
      const origin = endpointOrigin(text);
      const first = seen.get(origin);
      seen.set(origin, first ?? name);
      return first === undefined || first === name
        ? []
        : [
            errorAt(
              ['proxmox', name, 'endpoints', index],
              `is also an endpoint of region ${quoteKey(first)}; one Proxmox cluster must be one region`,
            ),
          ];
    }),
  );
}

function endpointOrigin(text: string): string {
  return URL.canParse(text) ? new URL(text).origin : text;
}

function findDuplicateIndexes(values: readonly string[]): readonly number[] {
  return values.flatMap((value, index) => (values.indexOf(value) < index ? [index] : []));
}
