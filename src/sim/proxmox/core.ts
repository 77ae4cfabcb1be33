// SPDX-License-Identifier: Apache-2.0
// What every endpoint gets: the state, the tasks, the locks, the access rules; and the call it answers.
import type { EndpointFact } from '../../proxmox/wire-facts/index.ts';
import type { AccessChecks, Need } from './access/checks.ts';
import type { Permissions } from './access/permissions.ts';
import type { Sessions } from './access/sessions.ts';
import { failure } from './api-error.ts';
import type { OpenConnection } from './guest/guest.ts';
import { type Params, type ParamValue, scalarText } from './schema/verify.ts';
import { SIMULATED_TIMEOUTS } from './tasks/durations.ts';
import type { TaskContext, TaskEngine } from './tasks/engine.ts';
import type { Locks } from './tasks/locks.ts';
import type { UrlDescription } from './world/description.ts';
import type { World } from './world/world.ts';

/** Where downloads come from, when the described URLs do not have them. Undefined = cannot be reached. */
export type UrlSource = (
  url: string,
) => Promise<(UrlDescription & { readonly bytes?: Uint8Array }) | undefined>;

export interface Core {
  readonly world: World;
  readonly tasks: TaskEngine;
  readonly locks: Locks;
  readonly permissions: Permissions;
  readonly access: AccessChecks;
  readonly sessions: Sessions;
  readonly urlSource: UrlSource;
  /** How guests reach Kubernetes servers; undefined = not at all. */
  readonly connect: OpenConnection | undefined;
}

export interface Upload {
  readonly bytes: Uint8Array;
  readonly tmpName: string;
}

/** An answer with a total beside its data. */
export class Paged {
  readonly data: unknown;
  readonly total: number;

  constructor(data: unknown, total: number) {
    this.data = data;
    this.total = total;
  }
}

export type Handler = (call: Call) => unknown;
export type Handlers = Readonly<Record<string, Handler>>;

export class Call {
  readonly core: Core;
  readonly endpoint: EndpointFact;
  /** `user@realm` or `user@realm!token`. */
  readonly who: string;
  /** The host that carries it out. */
  readonly host: string;
  readonly params: Params;
  readonly upload: Upload | undefined;

  constructor(fields: {
    readonly core: Core;
    readonly endpoint: EndpointFact;
    readonly who: string;
    readonly host: string;
    readonly params: Params;
    readonly upload: Upload | undefined;
  }) {
    this.core = fields.core;
    this.endpoint = fields.endpoint;
    this.who = fields.who;
    this.host = fields.host;
    this.params = fields.params;
    this.upload = fields.upload;
  }

  /** The same call with other parameters, for endpoints that are another word for a different one. */
  withParams(params: Params): Call {
    const { core, endpoint, who, host, upload } = this;
    return new Call({ core, endpoint, who, host, params, upload });
  }

  get world(): World {
    return this.core.world;
  }

  value(name: string): ParamValue | undefined {
    return this.params[name];
  }

  /** The parameter as text; undefined when it was not given. */
  optional(name: string): string | undefined {
    const value = this.params[name];
    return value === undefined ? undefined : scalarText(value);
  }

  text(name: string): string {
    return this.optional(name) ?? '';
  }

  integer(name: string): number {
    return Number(this.text(name));
  }

  flag(name: string): boolean {
    return this.text(name) === '1';
  }

  may(need: Need): boolean {
    return this.core.access.allows(this.who, need);
  }

  require(need: Need): void {
    this.core.access.require(this.who, need);
  }

  fork(
    task: { readonly type: string; readonly id?: string | number },
    work: (context: TaskContext) => Promise<void>,
  ): string {
    return startTask(this.core, { ...task, host: this.host, user: this.who }, work);
  }
}

export function startTask(
  core: Core,
  task: {
    readonly type: string;
    readonly id?: string | number;
    readonly host: string;
    readonly user: string;
  },
  work: (context: TaskContext) => Promise<void>,
): string {
  const host = core.world.hosts.get(task.host);
  const pid = host === undefined ? 1000 : (host.nextPid += 1 + core.world.random.integer(5));
  return core.tasks.start({ ...task, id: String(task.id ?? ''), pid: pid % 4_000_000 }, work);
}

export interface VmLock {
  readonly host: string;
  readonly id: number;
  readonly timeoutMs?: number;
  readonly shared?: boolean;
}

/** Work under a VM's file lock on its host. */
export function withVmLock<T>(core: Core, lock: VmLock, work: () => Promise<T>): Promise<T> {
  const file = `/var/lock/qemu-server/lock-${lock.id}.conf`;
  const timeoutMs = (lock.timeoutMs ?? SIMULATED_TIMEOUTS.configLock) / core.world.speed;
  const onTimeout = () => failure(`can't lock file '${file}' - got timeout`);
  return core.locks.with(
    { name: `${lock.host}:${file}`, shared: lock.shared === true, timeoutMs, onTimeout },
    work,
  );
}

/** Writes need the majority of the cluster. */
export function requireQuorum(core: Core): void {
  if (!core.world.quorate) throw failure('cluster not ready - no quorum?');
}
