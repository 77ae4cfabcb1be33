// SPDX-License-Identifier: Apache-2.0
// Changes of user.cfg (users, roles, ACL). They need quorum.
import { isAclPath, normaliseAclPath, splitToken } from '../access/permissions.ts';
import { ApiError, errorText, parameterError, serverError } from '../api-error.ts';
import type { Call } from '../core.ts';
import { splitList } from '../schema/formats.ts';
import type { Acl, User } from '../state/model.ts';

export function requireUser(call: Call): User {
  const id = call.text('userid');
  const user = call.state.users.get(id);
  if (user === undefined) throw serverError(`no such user ('${id}')`);
  return user;
}

/** Runs a change of user.cfg; prefixes every error with the action. */
export function changeUserConfig<T>(call: Call, action: string, change: () => T): T {
  if (!call.state.quorate) {
    throw serverError(`${action}: cfs-lock 'file-user_cfg' error: no quorum!`);
  }
  try {
    const result = change();
    call.state.accessVersion += 1;
    return result;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw serverError(`${action}: ${errorText(error)}`);
  }
}

function joinGroups(call: Call, userId: string): void {
  for (const id of splitList(call.text('groups'))) {
    const group = call.state.groups.get(id);
    if (group === undefined) throw serverError(`no such group '${id}'`);
    group.add(userId);
  }
}

export function createUser(call: Call): null {
  const id = call.text('userid');
  return changeUserConfig(call, 'create user failed', () => {
    if (call.state.users.has(id)) throw serverError(`user '${id}' already exists`);
    joinGroups(call, id);
    call.state.users.set(id, {
      id,
      password: call.optional('password'),
      enabled: call.optional('enable') !== '0',
      expire: call.integer('expire') || 0,
      tokens: new Map(),
    });
    return null;
  });
}

export function updateUser(call: Call): null {
  return changeUserConfig(call, 'update user failed', () => {
    const user = requireUser(call);
    if (call.optional('enable') !== undefined) user.enabled = call.flag('enable');
    if (call.optional('expire') !== undefined) user.expire = call.integer('expire');
    if (call.optional('groups') !== undefined && !call.flag('append')) {
      for (const members of call.state.groups.values()) members.delete(user.id);
    }
    joinGroups(call, user.id);
    return null;
  });
}

/** Deleting a missing user succeeds. */
export function deleteUser(call: Call): null {
  const id = call.text('userid');
  return changeUserConfig(call, 'delete user failed', () => {
    call.state.users.delete(id);
    for (const members of call.state.groups.values()) members.delete(id);
    call.state.acl = call.state.acl.filter(
      (entry) => entry.type === 'group' || splitToken(entry.who).user !== id,
    );
    return null;
  });
}

export function createRole(call: Call): null {
  const id = call.text('roleid');
  const privileges = splitList(call.text('privs'));
  const known = call.state.roles.get('Administrator');
  const unknown = privileges.find((name) => known?.has(name) !== true);
  if (unknown !== undefined) {
    throw parameterError({ privs: `invalid format - invalid privilege '${unknown}'\n` });
  }
  if (/^PVE/i.test(id)) {
    throw parameterError({
      roleid: "cannot use role ID starting with the (case-insensitive) 'PVE' namespace",
    });
  }
  return changeUserConfig(call, 'create role failed', () => {
    if (call.state.roles.has(id)) throw serverError(`role '${id}' already exists`);
    call.state.roles.set(id, new Set(privileges));
    return null;
  });
}

const ACL_KINDS = [
  ['group', 'groups'],
  ['user', 'users'],
  ['token', 'tokens'],
] as const;

function requireAclSubject(call: Call, type: Acl['type'], subject: string): void {
  const { groups, users } = call.state;
  if (type === 'group' && !groups.has(subject))
    throw serverError(`group '${subject}' does not exist`);
  if (type === 'user' && !users.has(subject)) throw serverError(`user '${subject}' does not exist`);
  if (type !== 'token') return;
  const { user, token = '' } = splitToken(subject);
  if (!users.has(user)) throw serverError(`no such user ('${user}')`);
  if (users.get(user)?.tokens.has(token) !== true) {
    throw serverError(`no such token '${token}' for user '${user}'`);
  }
}

function readAclEntries(call: Call, path: string): readonly Acl[] {
  const propagate = call.optional('propagate') !== '0';
  return splitList(call.text('roles')).flatMap((role) => {
    if (!call.state.roles.has(role)) throw serverError(`role '${role}' does not exist`);
    return ACL_KINDS.flatMap(([type, param]) =>
      splitList(call.text(param)).map((subject) => {
        requireAclSubject(call, type, subject);
        return { path, role, type, who: subject, propagate };
      }),
    );
  });
}

/** Paths that an ACL entry can have. */
const ACL_PATH = new RegExp(
  [
    '^(?:/',
    '/access',
    '/access/groups(?:/[\\w.-]+)?',
    '/access/realm(?:/[\\w.-]+)?',
    '/nodes(?:/[\\w.-]+)?',
    '/pool(?:/[\\w.-]+){0,3}',
    '/sdn',
    '/sdn/(?:controllers|dns|fabrics|ipams|prefix-lists|route-maps)(?:/[\\w.-]+)?',
    '/sdn/zones(?:/[\\w.-]+){0,2}(?:/[1-9][0-9]{0,3})?',
    '/storage(?:/[\\w.-]+)?',
    '/vms(?:/[1-9][0-9]{2,8})?',
    '/mapping(?:/[\\w.-]+){0,2})$',
  ].join('|'),
);

export function updateAcl(call: Call): null {
  if (ACL_KINDS.every(([, param]) => ['', '0'].includes(call.text(param)))) {
    const text = "either 'users', 'groups' or 'tokens' is required.";
    throw parameterError({ users: text, groups: text, tokens: text });
  }
  const given = call.text('path');
  const path = normaliseAclPath(given.startsWith('/') ? given : `/${given}`);
  if (!isAclPath(given) || (!call.flag('delete') && !ACL_PATH.test(path))) {
    throw parameterError({ path: `invalid ACL path '${given}'` });
  }
  return changeUserConfig(call, 'ACL update failed', () => {
    const entries = readAclEntries(call, path);
    const same = (a: Acl, b: Acl) =>
      a.path === b.path && a.role === b.role && a.type === b.type && a.who === b.who;
    const others = call.state.acl.filter((entry) => !entries.some((added) => same(entry, added)));
    call.state.acl = call.flag('delete') ? others : [...others, ...entries];
    return null;
  });
}
