// SPDX-License-Identifier: Apache-2.0
// /access: log-in, rights, users, tokens, roles, access rules.
import { normalisePath, splitToken } from '../access/permissions.ts';
import { ApiError, failure, parameterError } from '../api-error.ts';
import type { Call, Handlers } from '../core.ts';
import { splitList } from '../schema/formats.ts';
import type { Acl, Token, User } from '../world/model.ts';

const CAPABILITIES: readonly (readonly [string, string, RegExp])[] = [
  ['vms', '/vms', /^(?:VM\.|Permissions\.Modify)/],
  ['access', '/access/groups', /^(?:(?:User|Group)\.|Permissions\.Modify)/],
  ['storage', '/storage', /^(?:Datastore\.|Permissions\.Modify)/],
  ['nodes', '/nodes', /^(?:Sys\.|Permissions\.Modify)/],
  ['sdn', '/sdn', /^(?:SDN\.|Permissions\.Modify)/],
  ['mapping', '/mapping', /^(?:Mapping\.|Permissions\.Modify)/],
  ['dc', '/', /^(?:Sys\.Audit|Sys\.Modify|SDN\.)/],
];

function capabilities(call: Call, who: string): Record<string, Record<string, number>> {
  const result: Record<string, Record<string, number>> = {};
  for (const [name, path, pattern] of CAPABILITIES) {
    const names = [...call.core.permissions.of(who, path).keys()].filter((key) =>
      pattern.test(key),
    );
    result[name] = Object.fromEntries(names.map((key) => [key, 1]));
  }
  return result;
}

function login(call: Call): unknown {
  const realm = call.optional('realm');
  const given = call.text('username');
  const username = realm === undefined ? given : `${given}@${realm}`;
  const user = call.core.sessions.login(username, call.text('password'));
  // One text for every cause: an answer must not tell which users exist.
  if (user === undefined) throw new ApiError(401, 'authentication failure\n');
  const { clusterName } = call.world;
  return {
    username,
    ticket: call.core.sessions.ticket(username),
    CSRFPreventionToken: call.core.sessions.csrfToken(username),
    cap: capabilities(call, username),
    ...(clusterName === undefined ? {} : { clustername: clusterName }),
  };
}

function permissions(call: Call): unknown {
  const { core } = call;
  const userid = call.optional('userid') ?? call.who;
  const isOwn = userid === call.who || splitToken(userid).user === call.who;
  if (!isOwn) call.require({ path: '/access', privileges: ['Sys.Audit'] });
  const show = (path: string) =>
    Object.fromEntries(
      [...core.permissions.of(userid, path)].map(([name, propagates]) => [
        name,
        propagates ? 1 : 0,
      ]),
    );
  const path = call.optional('path');
  if (path !== undefined && path !== '') {
    if (!path.startsWith('/')) throw parameterError({ path: `invalid ACL path '${path}'` });
    return { [path]: show(normalisePath(path)) };
  }
  const rows = core.permissions.knownPaths().map((known) => [known, show(known)] as const);
  return Object.fromEntries(rows.filter(([, privileges]) => Object.keys(privileges).length > 0));
}

function showToken(token: Token): Record<string, unknown> {
  return {
    tokenid: token.id,
    privsep: token.privsep ? 1 : 0,
    expire: token.expire,
    ...(token.comment === undefined ? {} : { comment: token.comment }),
  };
}

function userOf(call: Call): User {
  const id = call.text('userid');
  const user = call.world.users.get(id);
  if (user === undefined) throw failure(`no such user ('${id}')`);
  return user;
}

function tokenOf(call: Call): Token {
  const user = userOf(call);
  const token = user.tokens.get(call.text('tokenid'));
  if (token === undefined)
    throw failure(`no such token '${call.text('tokenid')}' for user '${user.id}'`);
  return token;
}

function listUsers(call: Call): unknown {
  const mayAll = call.may({
    path: '/access/groups',
    privileges: ['User.Modify', 'Sys.Audit'],
    any: true,
  });
  return [...call.world.users.values()]
    .filter((user) => mayAll || user.id === splitToken(call.who).user)
    .map((user) => ({
      userid: user.id,
      enable: user.enabled ? 1 : 0,
      expire: user.expire,
      'realm-type': user.id.endsWith('@pam') ? 'pam' : 'pve',
      ...(call.flag('full') ? { tokens: [...user.tokens.values()].map(showToken) } : {}),
    }));
}

function showUser(call: Call): unknown {
  const user = userOf(call);
  const groups = [...call.world.groups].filter(([, members]) => members.has(user.id));
  return {
    enable: user.enabled ? 1 : 0,
    expire: user.expire,
    groups: groups.map(([id]) => id),
    tokens: Object.fromEntries(
      [...user.tokens.values()].map((token) => [
        token.id,
        { privsep: token.privsep ? 1 : 0, expire: token.expire },
      ]),
    ),
  };
}

function createToken(call: Call): unknown {
  const user = userOf(call);
  const id = call.text('tokenid');
  if (user.tokens.has(id)) throw parameterError({ tokenid: 'Token already exists.' });
  const token: Token = {
    id,
    secret: call.world.random.uuid(),
    privsep: call.optional('privsep') !== '0',
    expire: call.integer('expire') || 0,
    comment: call.optional('comment'),
  };
  user.tokens.set(id, token);
  call.world.accessVersion += 1;
  return {
    'full-tokenid': `${user.id}!${id}`,
    value: token.secret,
    info: { privsep: token.privsep ? '1' : '0', expire: String(token.expire) },
  };
}

function updateToken(call: Call): unknown {
  const token = tokenOf(call);
  if (call.optional('privsep') !== undefined) token.privsep = call.flag('privsep');
  if (call.optional('expire') !== undefined) token.expire = call.integer('expire');
  token.comment = call.optional('comment') ?? token.comment;
  call.world.accessVersion += 1;
  return showToken(token);
}

function deleteToken(call: Call): null {
  const token = tokenOf(call);
  userOf(call).tokens.delete(token.id);
  call.world.accessVersion += 1;
  return null;
}

function createUser(call: Call): null {
  const id = call.text('userid');
  if (call.world.users.has(id)) throw failure(`create user failed: user '${id}' already exists`);
  call.world.users.set(id, {
    id,
    password: call.optional('password'),
    enabled: call.optional('enable') !== '0',
    expire: call.integer('expire') || 0,
    tokens: new Map(),
  });
  for (const group of splitList(call.text('groups'))) call.world.groups.get(group)?.add(id);
  call.world.accessVersion += 1;
  return null;
}

function deleteUser(call: Call): null {
  call.world.users.delete(userOf(call).id);
  call.world.accessVersion += 1;
  return null;
}

function createRole(call: Call): null {
  const id = call.text('roleid');
  if (call.world.roles.has(id)) throw failure(`role '${id}' already exists`);
  const privileges = splitList(call.text('privs'));
  const known = call.world.roles.get('Administrator');
  const unknown = privileges.find((name) => known?.has(name) !== true);
  if (unknown !== undefined) {
    throw parameterError({ privs: `invalid format - invalid privilege '${unknown}'\n` });
  }
  call.world.roles.set(id, new Set(privileges));
  call.world.accessVersion += 1;
  return null;
}

function listRoles(call: Call): unknown {
  return [...call.world.roles].map(([roleid, privs]) => ({
    roleid,
    privs: [...privs].toSorted().join(','),
    special: /^(?:Administrator|NoAccess|PVE.*)$/.test(roleid) ? 1 : 0,
  }));
}

function listAcl(call: Call): unknown {
  return call.world.acl
    .filter(
      ({ path }) =>
        call.may({ path, privileges: ['Permissions.Modify'] }) ||
        call.may({ path: '/access', privileges: ['Sys.Audit'] }),
    )
    .map((entry) => ({
      path: entry.path,
      roleid: entry.role,
      type: entry.type,
      ugid: entry.who,
      propagate: entry.propagate ? 1 : 0,
    }));
}

function updateAcl(call: Call): null {
  const kinds = [
    ['user', 'users'],
    ['group', 'groups'],
    ['token', 'tokens'],
  ] as const;
  if (kinds.every(([, param]) => call.optional(param) === undefined)) {
    throw parameterError({ users: "either 'users', 'groups' or 'tokens' is required." });
  }
  const path = normalisePath(call.text('path'));
  const propagate = call.optional('propagate') !== '0';
  const wanted: Acl[] = [];
  for (const role of splitList(call.text('roles'))) {
    if (!call.world.roles.has(role)) throw failure(`role '${role}' does not exist`);
    for (const [type, param] of kinds) {
      for (const who of splitList(call.text(param)))
        wanted.push({ path, role, type, who, propagate });
    }
  }
  const same = (a: Acl, b: Acl) =>
    a.path === b.path && a.role === b.role && a.type === b.type && a.who === b.who;
  const others = call.world.acl.filter((entry) => !wanted.some((want) => same(entry, want)));
  call.world.acl = call.flag('delete') ? others : [...others, ...wanted];
  call.world.accessVersion += 1;
  return null;
}

export const ACCESS: Handlers = {
  'GET /access/ticket': () => null,
  'POST /access/ticket': login,
  'GET /access/permissions': permissions,
  'GET /access/users': listUsers,
  'POST /access/users': createUser,
  'GET /access/users/{userid}': showUser,
  'DELETE /access/users/{userid}': deleteUser,
  'GET /access/users/{userid}/token': (call) => [...userOf(call).tokens.values()].map(showToken),
  'GET /access/users/{userid}/token/{tokenid}': (call) => {
    const { tokenid: _id, ...shown } = showToken(tokenOf(call));
    return shown;
  },
  'POST /access/users/{userid}/token/{tokenid}': createToken,
  'PUT /access/users/{userid}/token/{tokenid}': updateToken,
  'DELETE /access/users/{userid}/token/{tokenid}': deleteToken,
  'GET /access/roles': listRoles,
  'POST /access/roles': createRole,
  'GET /access/acl': listAcl,
  'PUT /access/acl': updateAcl,
};
