// SPDX-License-Identifier: Apache-2.0
// Effective privileges: roles along a path, groups, pools, tokens with privilege separation. Knows no endpoint.

import type { ClusterState } from '../state/cluster-state.ts';
import type { Acl } from '../state/model.ts';

/** Privilege → whether it propagates to sub-paths. */
export type Privileges = ReadonlyMap<string, boolean>;

const NONE: Privileges = new Map();
export const ROOT_USER = 'root@pam';

export function splitToken(authUser: string): {
  readonly user: string;
  readonly token: string | undefined;
} {
  const at = authUser.indexOf('!');
  return at === -1
    ? { user: authUser, token: undefined }
    : { user: authUser.slice(0, at), token: authUser.slice(at + 1) };
}

function pathPrefixes(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '');
  return ['/', ...parts.map((_, index) => `/${parts.slice(0, index + 1).join('/')}`)];
}

/** Removes trailing and doubled slashes; `/` stays. */
export function normaliseAclPath(path: string): string {
  const clean = path.replaceAll(/\/+/g, '/').replace(/\/$/, '');
  return clean === '' ? '/' : clean;
}

/** Whether all characters are allowed in an ACL path. */
export function isAclPath(text: string): boolean {
  return /^[\w.\-/]+$/.test(text);
}

export class Permissions {
  readonly #state: ClusterState;
  readonly #cache = new Map<string, Privileges>();
  #version = -1;

  constructor(state: ClusterState) {
    this.#state = state;
  }

  /** All privileges of a user or token on a path. */
  privilegesOn(authUser: string, path: string): Privileges {
    this.#refresh();
    const key = `${authUser} ${path}`;
    const known = this.#cache.get(key);
    if (known !== undefined) return known;
    const computed = this.#compute(authUser, path);
    if (this.#cache.size > 5000) this.#cache.clear();
    this.#cache.set(key, computed);
    return computed;
  }

  has(authUser: string, path: string, privilege: string): boolean {
    return authUser === ROOT_USER || this.privilegesOn(authUser, path).has(privilege);
  }

  /** Paths that GET /access/permissions lists when no path is given. */
  knownPaths(): string[] {
    const paths = new Set([
      '/',
      '/access',
      '/access/groups',
      '/nodes',
      '/pool',
      '/sdn',
      '/storage',
      '/vms',
    ]);
    for (const path of this.aclPaths()) paths.add(path);
    for (const [, pool] of this.#state.pools) {
      for (const id of pool.vms) paths.add(`/vms/${id}`);
      for (const id of pool.storages) paths.add(`/storage/${id}`);
    }
    return [...paths];
  }

  /** Every path of an ACL entry, with its parent paths. */
  aclPaths(): ReadonlySet<string> {
    return new Set(this.#state.acl.flatMap(({ path }) => pathPrefixes(path)));
  }

  #refresh(): void {
    if (this.#version === this.#state.accessVersion) return;
    this.#version = this.#state.accessVersion;
    this.#cache.clear();
  }

  #compute(authUser: string, path: string): Privileges {
    if (authUser === ROOT_USER) return this.#rolePrivileges(new Map([['Administrator', true]]));
    const { user, token } = splitToken(authUser);
    const record = this.#state.users.get(user);
    if (token === undefined)
      return record === undefined ? NONE : this.#principalPrivileges(authUser, path);
    const known = record?.tokens.get(token);
    if (known === undefined) return NONE;
    const own = this.privilegesOn(user, path);
    if (!known.privsep) return own;
    const separated = this.#principalPrivileges(authUser, path);
    return new Map(
      [...separated]
        .filter(([name]) => own.has(name))
        .map(([name, propagates]) => [name, propagates && own.get(name) === true]),
    );
  }

  #principalPrivileges(authUser: string, path: string): Privileges {
    const roles = new Map(this.#roles(authUser, path));
    const fromPools = this.#poolRoles(authUser, path);
    if (fromPools.size > 0 && !roles.has('NoAccess')) {
      if (fromPools.has('NoAccess')) return NONE;
      for (const role of fromPools) if (!roles.has(role)) roles.set(role, false);
    }
    return this.#rolePrivileges(roles);
  }

  #rolePrivileges(roles: ReadonlyMap<string, boolean>): Privileges {
    const result = new Map<string, boolean>();
    for (const [role, propagates] of roles) {
      for (const name of this.#state.roles.get(role) ?? []) {
        result.set(name, result.get(name) === true || propagates);
      }
    }
    return result;
  }

  /** The deepest path with an entry decides; entries for the user override those for groups. */
  #roles(authUser: string, path: string): ReadonlyMap<string, boolean> {
    let roles: ReadonlyMap<string, boolean> = new Map();
    for (const prefix of pathPrefixes(path)) {
      const final = prefix === path;
      const here = this.#state.acl.filter(
        (entry) => entry.path === prefix && (final || entry.propagate),
      );
      const direct = here.filter((entry) => entry.type !== 'group' && entry.who === authUser);
      const chosen =
        direct.length > 0 ? direct : here.filter((entry) => this.#isMember(entry, authUser));
      if (chosen.length === 0) continue;
      roles = chosen.some((entry) => entry.role === 'NoAccess')
        ? new Map([['NoAccess', chosen.some((entry) => entry.propagate)]])
        : new Map(chosen.map((entry) => [entry.role, entry.propagate]));
    }
    return roles;
  }

  #isMember(entry: Acl, authUser: string): boolean {
    return entry.type === 'group' && this.#state.groups.get(entry.who)?.has(authUser) === true;
  }

  #poolRoles(authUser: string, path: string): ReadonlySet<string> {
    const roles = new Set<string>();
    const vm = /^\/vms\/(\d+)$/.exec(path)?.[1];
    const storage = /^\/storage\/([^/]+)$/.exec(path)?.[1];
    for (const [name, pool] of this.#state.pools) {
      const inside =
        (vm !== undefined && pool.vms.has(Number(vm))) ||
        (storage !== undefined && pool.storages.has(storage));
      if (!inside) continue;
      for (const role of this.#roles(authUser, `/pool/${name}`).keys()) roles.add(role);
    }
    return roles;
  }
}
