// SPDX-License-Identifier: Apache-2.0
import type { GuestUser } from '../guest-types.ts';
import type { GuestSystem } from '../system/system.ts';
import { asList, asText, asTexts, isRecord, type PlainRecord } from '../untyped-values.ts';

/** Creates the accounts of the first boot from users, user, ssh_authorized_keys and password. */
export function createUsers(system: GuestSystem, config: PlainRecord): void {
  const entries = config['users'] === undefined ? ['default'] : asList(config['users']);
  for (const entry of entries) {
    if (entry === 'default') createDefaultUser(system, config);
    else if (isRecord(entry)) createUser(system, entry);
    else if (typeof entry === 'string')
      addOrUpdateUser(system, { ...minimalUser(entry), groups: [] });
    else system.recordWarning('users: an entry is neither a name nor a mapping');
  }
}

function createDefaultUser(system: GuestSystem, config: PlainRecord): void {
  const override = config['user'];
  const entry = isRecord(override) ? override : {};
  const name = asText(override) ?? asText(entry['name']) ?? system.profile.defaultUser;
  const password = asText(config['password']);
  addOrUpdateUser(system, {
    ...minimalUser(name),
    authorizedKeys: [...asTexts(config['ssh_authorized_keys']), ...readAuthorizedKeys(entry)],
    groups: ['adm', 'sudo'],
    sudo: ['ALL=(ALL) NOPASSWD:ALL'],
    shell: '/bin/bash',
    lockPassword: password === undefined,
    ...(password === undefined ? {} : { passwordHash: password }),
  });
}

function createUser(system: GuestSystem, entry: PlainRecord): void {
  const name = asText(entry['name']);
  if (name === undefined) return system.recordWarning('users: an entry has no name');
  const hash = asText(entry['hashed_passwd']) ?? asText(entry['passwd']);
  addOrUpdateUser(system, {
    name,
    authorizedKeys: readAuthorizedKeys(entry),
    groups: parseGroups(entry['groups']),
    sudo: entry['sudo'] === false ? [] : asTexts(entry['sudo']),
    shell: asText(entry['shell']) ?? '/bin/sh',
    lockPassword: entry['lock_passwd'] !== false && entry['lock-passwd'] !== false,
    ...(hash === undefined ? {} : { passwordHash: hash }),
  });
}

function minimalUser(name: string): GuestUser {
  return { name, authorizedKeys: [], groups: [], sudo: [], shell: '/bin/sh', lockPassword: true };
}

function readAuthorizedKeys(entry: PlainRecord): string[] {
  return asTexts(entry['ssh_authorized_keys'] ?? entry['ssh-authorized-keys']);
}

function parseGroups(value: unknown): string[] {
  if (isRecord(value)) return Object.keys(value);
  return asTexts(value)
    .flatMap((text) => text.split(','))
    .map((group) => group.trim())
    .filter((group) => group !== '');
}

/** As in cloud-init, an existing account only receives the additional keys. */
function addOrUpdateUser(system: GuestSystem, user: GuestUser): void {
  const old = system.users.get(user.name);
  const authorizedKeys = [...new Set([...(old?.authorizedKeys ?? []), ...user.authorizedKeys])];
  system.users.set(user.name, { ...(old ?? user), authorizedKeys });
  const home = user.name === 'root' ? '/root' : `/home/${user.name}`;
  system.files.makeDirectory(`${home}/.ssh`);
  if (authorizedKeys.length === 0) return;
  const text = authorizedKeys.map((key) => `${key}\n`).join('');
  const owner = `${user.name}:${user.name}`;
  system.files.write(`${home}/.ssh/authorized_keys`, text, { mode: '0600', owner });
}
