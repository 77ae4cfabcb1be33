// SPDX-License-Identifier: Apache-2.0
// The known hosts file of OpenSSH: `host[,host…] type key`, with patterns, hashed names and markers.
import { createHmac } from 'node:crypto';

const DEFAULT_PORT = 22;

export interface HostAddress {
  readonly host: string;
  readonly port: number;
}

export interface KnownKey {
  /** `ssh-ed25519`. */
  readonly type: string;
  readonly base64: string;
  readonly isRevoked: boolean;
}

/** The keys that the file has for a host. Entries for certificate authorities are skipped. */
export function findKnownKeys(text: string, address: HostAddress): readonly KnownKey[] {
  return text.split('\n').flatMap((line) => parseLine(line.trim(), formatKnownHost(address)));
}

/** `pve1`, or `[pve1]:2222` if the port is not the default one. */
export function formatKnownHost({ host, port }: HostAddress): string {
  return port === DEFAULT_PORT ? host.toLowerCase() : `[${host.toLowerCase()}]:${port}`;
}

function parseLine(line: string, name: string): readonly KnownKey[] {
  if (line === '' || line.startsWith('#')) return [];
  const fields = line.split(/\s+/);
  const marker = fields[0]?.startsWith('@') === true ? fields.shift() : undefined;
  const [hosts = '', type = '', base64 = ''] = fields;
  if (marker === '@cert-authority' || base64 === '' || !matchesHosts(hosts, name)) return [];
  return [{ type, base64, isRevoked: marker === '@revoked' }];
}

function matchesHosts(hosts: string, name: string): boolean {
  if (hosts.startsWith('|1|')) return matchesHash(hosts, name);
  const patterns = hosts.split(',');
  const matches = (pattern: string) => toRegExp(pattern).test(name);
  return (
    patterns.some((pattern) => !pattern.startsWith('!') && matches(pattern)) &&
    !patterns.some((pattern) => pattern.startsWith('!') && matches(pattern.slice(1)))
  );
}

/** `|1|salt|hash`: the HMAC-SHA1 of the name. */
function matchesHash(hosts: string, name: string): boolean {
  const [, , salt = '', hash = ''] = hosts.split('|');
  return createHmac('sha1', Buffer.from(salt, 'base64')).update(name).digest('base64') === hash;
}

function toRegExp(pattern: string): RegExp {
  const source = pattern
    .toLowerCase()
    .replaceAll(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`);
}
