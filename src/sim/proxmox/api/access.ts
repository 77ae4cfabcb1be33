// SPDX-License-Identifier: Apache-2.0
// /access: login, permissions, users, tokens, roles, ACL.
import { isAclPath, normaliseAclPath, splitToken } from '../access/permissions.ts';
import { ApiError, parameterError, serverError } from '../api-error.ts';
import type { Call, Handlers } from '../core.ts';
import type { Token } from '../state/model.ts';
import {
  changeUserConfig,
  createRole,
  createUser,
  deleteUser,
  requireUser,
  updateAcl,
  updateUser,
} from './user-config.ts';

const CAPABILITIES: Readonly<Record<string, RegExp>> = {
  vms: /^(?:VM\.|Permissions\.Modify)/,
  access: /^(?:(?:User|Group)\.|Permissions\.Modify)/,
  storage: /^(?:Datastore\.|Permissions\.Modify)/,
  nodes: /^(?:Sys\.|Permissions\.Modify)/,
  sdn: /^(?:SDN\.|Permissions\.Modify)/,
  mapping: /^(?:Mapping\.|Permissions\.Modify)/,
  dc: /^(?:Sys\.Audit|Sys\.Modify|SDN\.)/,
};
const CAPABILITY_PATHS = ['/', '/nodes', '/access/groups', '/vms', '/storage', '/sdn', '/mapping'];

/** Privileges on a pool count as privileges on its VMs and storages. */
function capabilityNames(path: string, privilege: string): readonly string[] {
  const top = /^\/(\w+)/.exec(path)?.[1] ?? 'dc';
  if (top !== 'pool') return CAPABILITIES[top]?.test(privilege) === true ? [top] : [];
  return ['vms', 'storage'].filter((name) => CAPABILITIES[name]?.test(privilege));
}

function capabilities(call: Call, authUser: string): Record<string, Record<string, number>> {
  const result: Record<string, Record<string, number>> = {};
  for (const name of Object.keys(CAPABILITIES)) result[name] = {};
  const { permissions: rights } = call.core;
  for (const path of new Set([...CAPABILITY_PATHS, ...rights.aclPaths()])) {
    for (const privilege of rights.privilegesOn(authUser, path).keys()) {
      for (const name of capabilityNames(path, privilege)) (result[name] ??= {})[privilege] = 1;
    }
  }
  return result;
}

function login(call: Call): unknown {
  const realm = call.optional('realm');
  const given = call.text('username');
  const username = realm === undefined ? given : `${given}@${realm}`;
  const user = call.core.sessions.login(username, call.text('password'));
  // One message for every cause: the response must not disclose which users exist.
  if (user === undefined) throw new ApiError(401, 'authentication failure\n');
  const clusterName = call.core.access.allows(username, { path: '/', privileges: ['Sys.Audit'] })
    ? call.state.clusterName
    : undefined;
  return {
    username,
    ticket: call.core.sessions.createTicket(username),
    CSRFPreventionToken: call.core.sessions.createCsrfToken(username),
    cap: capabilities(call, username),
    ...(clusterName === undefined ? {} : { clustername: clusterName }),
  };
}

function listPermissions(call: Call): unknown {
  const { core } = call;
  const userid = call.optional('userid') ?? call.authUser;
  const isOwn = userid === call.authUser || splitToken(userid).user === call.authUser;
  if (!isOwn) call.require({ path: '/access', privileges: ['Sys.Audit'] });
  const show = (path: string) =>
    Object.fromEntries(
      [...core.permissions.privilegesOn(userid, path)].map(([name, propagates]) => [
        name,
        propagates ? 1 : 0,
      ]),
    );
  const path = call.optional('path');
  if (path !== undefined && path !== '') {
    return { [path]: path.startsWith('/') && isAclPath(path) ? show(normaliseAclPath(path)) : {} };
  }
  const rows = core.permissions.knownPaths().map((known) => [known, show(known)] as const);
  return Object.fromEntries(rows.filter(([, privileges]) => Object.keys(privileges).length > 0));
}

function formatToken(token: Token): Record<string, unknown> {
  return {
    tokenid: token.id,
    privsep: token.privsep ? 1 : 0,
    expire: token.expire,
    ...(token.comment === undefined ? {} : { comment: token.comment }),
  };
}

function requireToken(call: Call): Token {
  const user = requireUser(call);
  const token = user.tokens.get(call.text('tokenid'));
  if (token === undefined)
    throw serverError(`no such token '${call.text('tokenid')}' for user '${user.id}'`);
  return token;
}

function listUsers(call: Call): unknown {
  const privileges = ['User.Modify', 'Sys.Audit'];
  const { groups, users } = call.state;
  const isAllowedOn = (path: string) => call.isAllowed({ path, privileges, any: true });
  const seesAllUsers = isAllowedOn('/access/groups');
  const visibleUsers = new Set(
    [...groups].flatMap(([id, members]) =>
      isAllowedOn(`/access/groups/${id}`) ? [...members] : [],
    ),
  );
  const enabled = call.optional('enabled');
  return [...users.values()]
    .filter((user) => seesAllUsers || user.id === call.authUser || visibleUsers.has(user.id))
    .filter((user) => enabled === undefined || user.enabled === (enabled === '1'))
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    .map((user) => ({
      userid: user.id,
      enable: user.enabled ? 1 : 0,
      expire: user.expire,
      'realm-type': user.id.endsWith('@pam') ? 'pam' : 'pve',
      ...(call.flag('full')
        ? {
            groups: findGroups(call, user.id).join(','),
            tokens: [...user.tokens.values()].map(formatToken),
          }
        : {}),
    }));
}

function findGroups(call: Call, userId: string): readonly string[] {
  return [...call.state.groups].filter(([, members]) => members.has(userId)).map(([id]) => id);
}

function showUser(call: Call): unknown {
  const user = requireUser(call);
  return {
    enable: user.enabled ? 1 : 0,
    expire: user.expire,
    groups: findGroups(call, user.id),
    tokens: Object.fromEntries(
      [...user.tokens.values()].map((token) => [
        token.id,
        { privsep: token.privsep ? 1 : 0, expire: token.expire },
      ]),
    ),
  };
}

function createToken(call: Call): unknown {
  const user = requireUser(call);
  const id = call.text('tokenid');
  if (user.tokens.has(id)) throw parameterError({ tokenid: 'Token already exists.' });
  const token: Token = {
    id,
    secret: call.state.random.uuid(),
    privsep: call.optional('privsep') !== '0',
    expire: call.integer('expire') || 0,
    comment: call.optional('comment'),
  };
  changeUserConfig(call, 'generating token failed', () => user.tokens.set(id, token));
  return {
    'full-tokenid': `${user.id}!${id}`,
    value: token.secret,
    info: {
      privsep: call.optional('privsep') ?? 1,
      ...(call.optional('expire') === undefined ? {} : { expire: call.text('expire') }),
      ...(token.comment === undefined ? {} : { comment: token.comment }),
    },
  };
}

function updateToken(call: Call): unknown {
  const token = requireToken(call);
  changeUserConfig(call, 'updating token info failed', () => {
    if (call.optional('privsep') !== undefined) token.privsep = call.flag('privsep');
    if (call.optional('expire') !== undefined) token.expire = call.integer('expire');
    token.comment = call.optional('comment') ?? token.comment;
  });
  const { tokenid: _id, ...shown } = formatToken(token);
  return shown;
}

function deleteToken(call: Call): null {
  const token = requireToken(call);
  changeUserConfig(call, 'deleting token failed', () => requireUser(call).tokens.delete(token.id));
  return null;
}

function listRoles(call: Call): unknown {
  return [...call.state.roles].map(([roleid, privs]) => ({
    roleid,
    privs: [...privs].toSorted().join(','),
    special: /^(?:Administrator|NoAccess|PVE.*)$/.test(roleid) ? 1 : 0,
  }));
}

function listAcl(call: Call): unknown {
  return call.state.acl
    .filter(
      ({ path }) =>
        call.isAllowed({ path, privileges: ['Permissions.Modify'] }) ||
        call.isAllowed({ path: '/access', privileges: ['Sys.Audit'] }),
    )
    .map((entry) => ({
      path: entry.path,
      roleid: entry.role,
      type: entry.type,
      ugid: entry.who,
      propagate: entry.propagate ? 1 : 0,
    }));
}

export const ACCESS_HANDLERS: Handlers = {
  'GET /access/ticket': () => null,
  'POST /access/ticket': login,
  'GET /access/permissions': listPermissions,
  'GET /access/users': listUsers,
  'POST /access/users': createUser,
  'GET /access/users/{userid}': showUser,
  'PUT /access/users/{userid}': updateUser,
  'DELETE /access/users/{userid}': deleteUser,
  'GET /access/users/{userid}/token': (call) =>
    [...requireUser(call).tokens.values()].map(formatToken),
  'GET /access/users/{userid}/token/{tokenid}': (call) => {
    const { tokenid: _id, ...shown } = formatToken(requireToken(call));
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
