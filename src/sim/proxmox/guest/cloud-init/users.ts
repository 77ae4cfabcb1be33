// SPDX-License-Identifier: Apache-2.0
import type { GuestUser } from '../guest-types.ts';
import { isRecord, listOf, type PlainRecord, textOf, textsOf } from '../plain-values.ts';
import type { GuestSystem } from '../system/system.ts';

/** users, user, ssh_authorized_keys, password: the accounts that the first boot makes. */
export function makeUsers(system: GuestSystem, config: PlainRecord): void {
  const wanted = config['users'] === undefined ? ['default'] : listOf(config['users']);
  for (const entry of wanted) {
    if (entry === 'default') makeDefaultUser(system, config);
    else if (isRecord(entry)) makeUser(system, entry);
    else if (typeof entry === 'string') addUser(system, { ...bareUser(entry), groups: [] });
    else system.warn('users: an entry that is neither a name nor a mapping');
  }
}

function makeDefaultUser(system: GuestSystem, config: PlainRecord): void {
  const override = config['user'];
  const entry = isRecord(override) ? override : {};
  const name = textOf(override) ?? textOf(entry['name']) ?? system.profile.defaultUser;
  const password = textOf(config['password']);
  addUser(system, {
    ...bareUser(name),
    authorizedKeys: [...textsOf(config['ssh_authorized_keys']), ...keysOf(entry)],
    groups: ['adm', 'sudo'],
    sudo: ['ALL=(ALL) NOPASSWD:ALL'],
    shell: '/bin/bash',
    lockPassword: password === undefined,
    ...(password === undefined ? {} : { passwordHash: password }),
  });
}

function makeUser(system: GuestSystem, entry: PlainRecord): void {
  const name = textOf(entry['name']);
  if (name === undefined) return system.warn('users: an entry without a name');
  const hash = textOf(entry['hashed_passwd']) ?? textOf(entry['passwd']);
  addUser(system, {
    name,
    authorizedKeys: keysOf(entry),
    groups: groupsOf(entry['groups']),
    sudo: entry['sudo'] === false ? [] : textsOf(entry['sudo']),
    shell: textOf(entry['shell']) ?? '/bin/sh',
    lockPassword: entry['lock_passwd'] !== false && entry['lock-passwd'] !== false,
    ...(hash === undefined ? {} : { passwordHash: hash }),
  });
}

function bareUser(name: string): GuestUser {
  return { name, authorizedKeys: [], groups: [], sudo: [], shell: '/bin/sh', lockPassword: true };
}

function keysOf(entry: PlainRecord): string[] {
  return textsOf(entry['ssh_authorized_keys'] ?? entry['ssh-authorized-keys']);
}

function groupsOf(value: unknown): string[] {
  if (isRecord(value)) return Object.keys(value);
  return textsOf(value)
    .flatMap((text) => text.split(','))
    .map((group) => group.trim())
    .filter((group) => group !== '');
}

/** An account that is there already keeps what it has and gets the keys, as in cloud-init. */
function addUser(system: GuestSystem, user: GuestUser): void {
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
