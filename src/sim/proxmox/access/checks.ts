// SPDX-License-Identifier: Apache-2.0
// Permission checks: those that the API declares per endpoint, and helpers for checks inside endpoints.
import type { EndpointFact, PermissionCheck } from '../../../proxmox/wire-facts/index.ts';
import { permissionError, serverError } from '../api-error.ts';
import { splitList } from '../schema/formats.ts';
import { formatScalar, type Params } from '../schema/verify.ts';
import type { ClusterState } from '../state/cluster-state.ts';
import { isAclPath, normaliseAclPath, type Permissions, ROOT_USER } from './permissions.ts';

export interface RequiredPrivileges {
  readonly path: string;
  readonly privileges: readonly string[];
  readonly any?: boolean;
}

export class AccessChecks {
  readonly #state: ClusterState;
  readonly #permissions: Permissions;

  constructor(state: ClusterState, permissions: Permissions) {
    this.#state = state;
    this.#permissions = permissions;
  }

  allows(authUser: string, required: RequiredPrivileges): boolean {
    if (required.path === '') return authUser === ROOT_USER;
    const has = (name: string) => this.#permissions.has(authUser, required.path, name);
    return required.any === true ? required.privileges.some(has) : required.privileges.every(has);
  }

  require(authUser: string, required: RequiredPrivileges): void {
    if (this.allows(authUser, required)) return;
    const missing = required.privileges.find(
      (name) => required.path === '' || !this.#permissions.has(authUser, required.path, name),
    );
    const names = required.any === true ? required.privileges.join('|') : (missing ?? '');
    throw permissionError(`${required.path}, ${names}`);
  }

  requirePool(pool: string): void {
    if (!this.#state.pools.has(pool)) throw permissionError(`pool '${pool}' does not exist`);
  }

  /** Passes with the privileges on the given pool; otherwise requires them on the VM. */
  requireVm(
    authUser: string,
    vm: { readonly id: number; readonly pool?: string | undefined },
    required: Omit<RequiredPrivileges, 'path'>,
  ): void {
    if (vm.pool !== undefined && this.allows(authUser, { ...required, path: `/pool/${vm.pool}` }))
      return;
    this.require(authUser, { ...required, path: `/vms/${vm.id}` });
  }

  /** Runs the check that the endpoint declares. `authUser` is undefined before login. */
  requireEndpoint(endpoint: EndpointFact, authUser: string | undefined, params: Params): void {
    const { permissions } = endpoint;
    if (authUser === undefined) {
      if (permissions.user === 'world') return;
      throw permissionError('user != null');
    }
    if (authUser === ROOT_USER) return;
    if (permissions.rootOnly === true) throw permissionError('user != root@pam');
    if (permissions.user === 'all') return;
    if (permissions.check === undefined) throw permissionError();
    this.#runCheck(permissions.check, { authUser, params, quiet: false });
  }

  #runCheck(check: PermissionCheck, context: PermissionContext): boolean {
    const [test, ...rest] = check;
    if (test === 'and') {
      for (const part of rest) this.#runCheck(asCheck(part), { ...context, quiet: false });
      return true;
    }
    if (test === 'or') {
      if (rest.some((part) => this.#runCheck(asCheck(part), { ...context, quiet: true })))
        return true;
      return denyUnlessQuiet(context);
    }
    if (test === 'perm') return this.#checkPerm(rest, context);
    if (test === 'userid-param') return this.#checkUserParam(rest, context);
    if (test === 'userid-group') return this.#checkUserGroup(rest, context);
    return test === 'perm-modify' ? this.#checkPermModify(rest, context) : denyUnlessQuiet(context);
  }

  #requireOrReturn(required: RequiredPrivileges, context: PermissionContext): boolean {
    if (this.allows(context.authUser, required)) return true;
    if (!context.quiet) this.require(context.authUser, required);
    return false;
  }

  #checkPerm(rest: PermissionCheck, context: PermissionContext): boolean {
    const [template, privileges, ...options] = rest;
    const required = findCheckOption(options, 'require_param');
    if (required !== undefined && context.params[String(required)] === undefined)
      return denyUnlessQuiet(context);
    const any = findCheckOption(options, 'any') !== undefined;
    const path = normaliseAclPath(fillPathTemplate(String(template), context.params));
    // An invalid ACL path grants no privileges, and the error message leaves it out.
    return this.#requireOrReturn(
      { path: isAclPath(path) ? path : '', privileges: asNames(privileges), any },
      context,
    );
  }

  #checkUserParam(rest: PermissionCheck, context: PermissionContext): boolean {
    const user = formatScalar(context.params['userid'] ?? '');
    verifyUserName(user);
    if (rest[0] === 'self') {
      return (
        this.#requireUserExists(user, context) &&
        (user === context.authUser || denyUnlessQuiet(context))
      );
    }
    const realm = user.split('@').at(-1) ?? '';
    return this.#requireOrReturn(
      { path: `/access/realm/${realm}`, privileges: [String(rest[0])] },
      context,
    );
  }

  #requireUserExists(user: string, context: PermissionContext): boolean {
    if (this.#state.users.has(user)) return true;
    if (context.quiet) return false;
    verifyUserName(user);
    throw serverError(`no such user ('${user}')`);
  }

  /** Requires the privileges on /access/groups, or on every group given and one group of the user. */
  #checkUserGroup(rest: PermissionCheck, context: PermissionContext): boolean {
    const privileges = asNames(rest[0]);
    const user = formatScalar(context.params['userid'] ?? '');
    const named = findCheckOption(rest.slice(1), 'groups_param');
    if (named !== 'create' && !this.#requireUserExists(user, context)) return false;
    if (this.allows(context.authUser, { path: '/access/groups', privileges, any: true }))
      return true;
    const permittedGroups = new Set(
      [...this.#state.groups.keys()].filter((group) =>
        this.allows(context.authUser, { path: `/access/groups/${group}`, privileges, any: true }),
      ),
    );
    if (named !== undefined) requireGroups(context, { privileges, permittedGroups });
    if (named === 'create') return true;
    const allowed = [...permittedGroups].some(
      (group) => this.#state.groups.get(group)?.has(user) === true,
    );
    return allowed || denyUnlessQuiet(context);
  }

  #checkPermModify(rest: PermissionCheck, context: PermissionContext): boolean {
    const given = fillPathTemplate(String(rest[0]), context.params);
    // The parameter check refuses the path later, with the path in its message.
    if (!isAclPath(given)) return !context.quiet;
    const path = normaliseAclPath(given);
    const extra = [
      [/^\/storage\/.+/, 'Datastore.Allocate'],
      [/^\/vms\/.+/, 'VM.Allocate'],
      [/^\/pool\/.+/, 'Pool.Allocate'],
    ] as const;
    const more = extra.filter(([pattern]) => pattern.test(path)).map(([, name]) => name);
    return this.#requireOrReturn(
      { path, privileges: ['Permissions.Modify', ...more], any: true },
      context,
    );
  }
}

interface PermissionContext {
  readonly authUser: string;
  readonly params: Params;
  /** Set inside an `or`: return false instead of throwing. */
  readonly quiet: boolean;
}

function denyUnlessQuiet(context: PermissionContext): boolean {
  if (context.quiet) return false;
  throw permissionError();
}

/** Runs before parameter verification, so a wrong name is a server error, not a parameter error. */
function verifyUserName(user: string): void {
  if (user.length < 3) throw serverError(`user name '${user}' is too short`);
  if (user.length > 64) throw serverError(`user name '${user}' is too long (${user.length} > 64)`);
  if (/^[^\s:/]+@[A-Za-z][A-Za-z0-9.\-_]+$/.test(user)) return;
  throw serverError(`value '${user}' does not look like a valid user name`);
}

/** Throws with the missing privilege when no group is given, or one without the caller's privileges. */
function requireGroups(
  context: PermissionContext,
  has: { readonly privileges: readonly string[]; readonly permittedGroups: ReadonlySet<string> },
): void {
  const groups = splitList(formatScalar(context.params['groups'] ?? ''));
  const names = has.privileges.join('|');
  if (groups.length === 0) throw permissionError(`/access/groups, ${names}`);
  const foreign = groups.find((group) => !has.permittedGroups.has(group));
  if (foreign !== undefined) throw permissionError(`/access/groups/${foreign}, ${names}`);
}

function asCheck(part: PermissionCheck[number] | undefined): PermissionCheck {
  return Array.isArray(part) ? (part as PermissionCheck) : [];
}

function asNames(part: PermissionCheck[number] | undefined): readonly string[] {
  return asCheck(part).map(String);
}

function findCheckOption(options: PermissionCheck, name: string): string | number | undefined {
  const index = options.indexOf(name);
  const value = index === -1 ? undefined : options[index + 1];
  return typeof value === 'string' || typeof value === 'number' ? value : undefined;
}

/** A missing parameter becomes an empty path segment, as in Proxmox. */
function fillPathTemplate(template: string, params: Params): string {
  return template.replaceAll(/\{([^}]+)\}/g, (_, name: string) => formatScalar(params[name] ?? ''));
}
