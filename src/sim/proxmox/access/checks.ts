// SPDX-License-Identifier: Apache-2.0
// The permission checks that the API declares per endpoint, and the helpers that endpoints use themselves.
import type { EndpointFact, PermissionCheck } from '../../../proxmox/wire-facts/index.ts';
import { permissionError } from '../api-error.ts';
import { type Params, scalarText } from '../schema/verify.ts';
import type { World } from '../world/world.ts';
import { normalisePath, type Permissions, ROOT } from './permissions.ts';

export interface Need {
  readonly path: string;
  readonly privileges: readonly string[];
  readonly any?: boolean;
}

export class AccessChecks {
  readonly #world: World;
  readonly #permissions: Permissions;

  constructor(world: World, permissions: Permissions) {
    this.#world = world;
    this.#permissions = permissions;
  }

  allows(who: string, need: Need): boolean {
    const has = (name: string) => this.#permissions.has(who, need.path, name);
    return need.any === true ? need.privileges.some(has) : need.privileges.every(has);
  }

  require(who: string, need: Need): void {
    if (this.allows(who, need)) return;
    const missing = need.privileges.find((name) => !this.#permissions.has(who, need.path, name));
    const names = need.any === true ? need.privileges.join('|') : (missing ?? '');
    throw permissionError(`${need.path}, ${names}`);
  }

  requirePool(pool: string): void {
    if (!this.#world.pools.has(pool)) throw permissionError(`pool '${pool}' does not exist`);
  }

  /** On the pool first, where one is named; then on the VM. */
  requireVm(
    who: string,
    vm: { readonly id: number; readonly pool?: string | undefined },
    need: Omit<Need, 'path'>,
  ): void {
    if (vm.pool !== undefined && this.allows(who, { ...need, path: `/pool/${vm.pool}` })) return;
    this.require(who, { ...need, path: `/vms/${vm.id}` });
  }

  /** What the endpoint declares. `who` is undefined before a log-in. */
  endpoint(endpoint: EndpointFact, who: string | undefined, params: Params): void {
    const { permissions } = endpoint;
    if (who === undefined) {
      if (permissions.user === 'world') return;
      throw permissionError('user != null');
    }
    if (who === ROOT) return;
    if (permissions.rootOnly === true) throw permissionError('user != root@pam');
    if (permissions.user === 'all') return;
    if (permissions.check === undefined) throw permissionError();
    this.#run(permissions.check, { who, params, quiet: false });
  }

  #run(check: PermissionCheck, at: Asking): boolean {
    const [test, ...rest] = check;
    if (test === 'and') {
      for (const part of rest) this.#run(asCheck(part), { ...at, quiet: false });
      return true;
    }
    if (test === 'or') {
      if (rest.some((part) => this.#run(asCheck(part), { ...at, quiet: true }))) return true;
      return refuse(at);
    }
    if (test === 'perm') return this.#perm(rest, at);
    if (test === 'userid-param') return this.#userParam(rest, at);
    if (test === 'userid-group') return this.#userGroup(rest, at);
    return test === 'perm-modify' ? this.#modify(rest, at) : refuse(at);
  }

  #check(need: Need, at: Asking): boolean {
    if (this.allows(at.who, need)) return true;
    if (!at.quiet) this.require(at.who, need);
    return false;
  }

  #perm(rest: PermissionCheck, at: Asking): boolean {
    const [template, privileges, ...options] = rest;
    const required = option(options, 'require_param');
    if (required !== undefined && at.params[String(required)] === undefined) return refuse(at);
    const path = normalisePath(fill(String(template), at.params));
    const any = option(options, 'any') !== undefined;
    return this.#check({ path, privileges: asNames(privileges), any }, at);
  }

  #userParam(rest: PermissionCheck, at: Asking): boolean {
    const user = scalarText(at.params['userid'] ?? '');
    if (rest[0] === 'self') return user === at.who || refuse(at);
    const realm = user.split('@').at(-1) ?? '';
    return this.#check({ path: `/access/realm/${realm}`, privileges: [String(rest[0])] }, at);
  }

  #userGroup(rest: PermissionCheck, at: Asking): boolean {
    const privileges = asNames(rest[0]);
    const user = scalarText(at.params['userid'] ?? '');
    if (option(rest.slice(1), 'groups_param') !== 'create' && !this.#world.users.has(user)) {
      if (at.quiet) return false;
      throw permissionError(`user '${user}' does not exist`);
    }
    if (this.allows(at.who, { path: '/access/groups', privileges, any: true })) return true;
    const allowed = [...this.#world.groups].some(
      ([group, members]) =>
        members.has(user) &&
        this.allows(at.who, { path: `/access/groups/${group}`, privileges, any: true }),
    );
    return allowed || refuse(at);
  }

  #modify(rest: PermissionCheck, at: Asking): boolean {
    const path = normalisePath(fill(String(rest[0]), at.params));
    const extra = [
      [/^\/storage\/.+/, 'Datastore.Allocate'],
      [/^\/vms\/.+/, 'VM.Allocate'],
      [/^\/pool\/.+/, 'Pool.Allocate'],
    ] as const;
    const more = extra.filter(([pattern]) => pattern.test(path)).map(([, name]) => name);
    return this.#check({ path, privileges: ['Permissions.Modify', ...more], any: true }, at);
  }
}

interface Asking {
  readonly who: string;
  readonly params: Params;
  /** Inside an `or`: answer instead of refusing. */
  readonly quiet: boolean;
}

function refuse(at: Asking): boolean {
  if (at.quiet) return false;
  throw permissionError();
}

function asCheck(part: PermissionCheck[number] | undefined): PermissionCheck {
  return Array.isArray(part) ? (part as PermissionCheck) : [];
}

function asNames(part: PermissionCheck[number] | undefined): readonly string[] {
  return asCheck(part).map(String);
}

function option(options: PermissionCheck, name: string): string | number | undefined {
  const index = options.indexOf(name);
  const value = index === -1 ? undefined : options[index + 1];
  return typeof value === 'string' || typeof value === 'number' ? value : undefined;
}

/** A parameter that was not given leaves its place empty, as the real one does. */
function fill(template: string, params: Params): string {
  return template.replaceAll(/\{([^}]+)\}/g, (_, name: string) => scalarText(params[name] ?? ''));
}
