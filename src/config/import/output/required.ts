// SPDX-License-Identifier: Apache-2.0
// Keys that our config requires. When the source file has no valid value for one, a placeholder keeps the
// file valid and its comment says what to replace.

import type { ConfigPath } from '../../config-path.ts';
import type { ImportWriter } from '../writer.ts';
import type { Draft, DraftValue } from './draft.ts';

interface RequiredKey {
  /** `*` stands for any name or index. Required wherever its parent has a value. */
  readonly path: string;
  readonly value: DraftValue | ((name: string) => DraftValue);
  readonly message: string;
  /** Sibling keys that make this key optional. */
  readonly unless?: readonly string[];
}

/** Unique per region, because two regions must not share an endpoint. */
export function placeholderEndpoints(region: string): readonly string[] {
  return [`https://${region}.invalid:8006`];
}

const REQUIRED_KEYS: readonly RequiredKey[] = [
  {
    path: 'proxmox.*.endpoints',
    value: placeholderEndpoints,
    message: 'the URL of the Proxmox API',
    unless: ['transport'],
  },
  {
    path: 'proxmox.*.token.id',
    value: 'pvescaler@pve!pvescaler',
    message: 'the id of the API token, user@realm!name',
    unless: ['idRef'],
  },
  { path: 'proxmox.*.token.idRef.name', value: 'proxmox', message: 'the name of the Secret' },
  { path: 'proxmox.*.token.secretRef.name', value: 'proxmox', message: 'the name of the Secret' },
  {
    path: 'proxmox.*.user',
    value: 'root@pam',
    message: 'the user for the Proxmox API, user@realm',
    unless: ['token', 'transport'],
  },
  {
    path: 'proxmox.*.transport.ssh.hosts',
    value: ['proxmox.invalid'],
    message: 'the Proxmox hosts to log in to',
  },
  {
    path: 'proxmox.*.transport.ssh.privateKeyFile',
    value: '~/.ssh/id_ed25519',
    message: 'the private key for the Proxmox hosts',
  },
  {
    path: 'images.*.url',
    value: 'https://images.invalid/cloud.img',
    message: 'the URL of the cloud image',
  },
  {
    path: 'images.*.unverified',
    value: true,
    message: 'use checksum or checksumUrl instead',
    unless: ['checksumUrl', 'checksum'],
  },
  {
    path: 'templates.*.name',
    value: 'template',
    message: 'the name of the template',
    unless: ['id'],
  },
  {
    path: 'join.k3s.server',
    value: 'https://k3s.invalid:6443',
    message: 'the server URL that machines join',
  },
  { path: 'sizes.*.cpu', value: 2, message: 'the vCPUs of this size' },
  { path: 'sizes.*.memory', value: '4Gi', message: 'the memory of this size' },
  { path: 'pools.*.size.cpu', value: 2, message: 'the vCPUs of a machine', unless: ['min'] },
  {
    path: 'pools.*.size.memory',
    value: '4Gi',
    message: 'the memory of a machine',
    unless: ['min'],
  },
  {
    path: 'pools.*.size',
    value: { cpu: 2, memory: '4Gi' },
    message: 'the size of a machine',
  },
  { path: 'pools.*.name', value: 'pool', message: 'the name of the pool' },
];

/** Writes a placeholder for every missing required key. */
export function addRequiredPlaceholders(writer: ImportWriter, draft: Draft): void {
  for (const pool of findParents(draft, ['pools', '*']))
    replaceIncompleteAddresses(writer, draft, pool);
  for (const { path, value, message, unless = [] } of REQUIRED_KEYS) {
    const steps = path.split('.');
    for (const parent of findParents(draft, steps.slice(0, -1))) {
      const own = [...parent, steps.at(-1) ?? ''];
      const isThere = [own, ...unless.map((key) => [...parent, key])].some((at) =>
        draft.hasValue(at),
      );
      if (isThere) continue;
      const where = writer.findOrigin(own) ?? { path: '(nothing)' };
      const written = typeof value === 'function' ? value(String(parent.at(-1))) : value;
      writer.setPlaceholder(own, written, { where, message });
    }
  }
}

/** The paths that match a pattern and have values below them. */
function findParents(draft: Draft, pattern: readonly string[]): readonly ConfigPath[] {
  const parents = new Map<string, ConfigPath>();
  for (const path of draft.paths()) {
    const fits =
      path.length > pattern.length &&
      pattern.every((step, at) => step === '*' || step === path[at]);
    if (fits)
      parents.set(JSON.stringify(path.slice(0, pattern.length)), path.slice(0, pattern.length));
  }
  return [...parents.values()];
}

/** A range needs a prefix length. If one of them is missing, DHCP is used instead. */
function replaceIncompleteAddresses(writer: ImportWriter, draft: Draft, pool: ConfigPath): void {
  const ip = [...pool, 'network', 'ip'];
  const has = (key: string) => draft.hasValue([...ip, key]);
  const isStatic = ['pool', 'prefix', 'gateway', 'dns'].some(has) && !has('v4');
  if (!isStatic || (has('pool') && has('prefix'))) return;
  for (const removedPath of draft.remove(ip)) {
    const where = writer.findOrigin(removedPath) ?? { path: 'addresses' };
    writer.note(
      where,
      'action-required',
      'was not imported, because a range and its prefix length are required together',
    );
  }
  const message = 'an address range with prefix, gateway and dns; machines use DHCP until then';
  writer.setPlaceholder(ip, 'dhcp', { where: { path: 'addresses' }, message });
}
