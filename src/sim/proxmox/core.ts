// SPDX-License-Identifier: Apache-2.0
// What every endpoint handler receives: the call, and through it the state, tasks, locks and permissions.
import type { EndpointFact } from '../../proxmox/wire-facts/index.ts';
import type { AccessChecks, RequiredPrivileges } from './access/checks.ts';
import type { Permissions } from './access/permissions.ts';
import type { Sessions } from './access/sessions.ts';
import { serverError } from './api-error.ts';
import type { Faults } from './control/faults.ts';
import type { Guest, GuestInput, OpenConnection } from './guest/guest.ts';
import { formatScalar, type Params, type ParamValue } from './schema/verify.ts';
import type { UrlDescription } from './state/cluster-description.ts';
import type { ClusterState } from './state/cluster-state.ts';
import { SIMULATED_TIMEOUTS_MS } from './tasks/durations.ts';
import type { TaskContext, TaskEngine } from './tasks/engine.ts';
import type { Locks } from './tasks/locks.ts';

/** Source of downloads for URLs that the cluster description lacks. Undefined = unreachable. */
export type UrlSource = (
  url: string,
) => Promise<(UrlDescription & { readonly bytes?: Uint8Array }) | undefined>;

export interface Core {
  readonly faults: Faults;
  readonly state: ClusterState;
  readonly tasks: TaskEngine;
  readonly locks: Locks;
  readonly permissions: Permissions;
  readonly access: AccessChecks;
  readonly sessions: Sessions;
  readonly urlSource: UrlSource;
  /** How guests connect to Kubernetes servers; undefined = they cannot. */
  readonly connect: OpenConnection | undefined;
  readonly createGuest: (input: GuestInput) => Guest;
}

export interface Upload {
  readonly bytes: Uint8Array;
  readonly tmpName: string;
}

/** A result with the total number of rows next to its data. */
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
  readonly authUser: string;
  /** The host that executes the call. */
  readonly host: string;
  /** The host that received the call. */
  readonly entryHost: string;
  readonly params: Params;
  readonly upload: Upload | undefined;

  constructor(fields: {
    readonly core: Core;
    readonly endpoint: EndpointFact;
    readonly authUser: string;
    readonly host: string;
    readonly entryHost: string;
    readonly params: Params;
    readonly upload: Upload | undefined;
  }) {
    this.core = fields.core;
    this.endpoint = fields.endpoint;
    this.authUser = fields.authUser;
    this.host = fields.host;
    this.entryHost = fields.entryHost;
    this.params = fields.params;
    this.upload = fields.upload;
  }

  /** The same call with other parameters, for endpoints that are an alias of another one. */
  withParams(params: Params): Call {
    const { core, endpoint, authUser, host, entryHost, upload } = this;
    return new Call({ core, endpoint, authUser, host, entryHost, params, upload });
  }

  get state(): ClusterState {
    return this.core.state;
  }

  value(name: string): ParamValue | undefined {
    return this.params[name];
  }

  /** The parameter as text; undefined when it is missing. */
  optional(name: string): string | undefined {
    const value = this.params[name];
    return value === undefined ? undefined : formatScalar(value);
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

  isAllowed(required: RequiredPrivileges): boolean {
    return this.core.access.allows(this.authUser, required);
  }

  require(required: RequiredPrivileges): void {
    this.core.access.require(this.authUser, required);
  }

  forkTask(
    task: { readonly type: string; readonly id?: string | number },
    work: (context: TaskContext) => Promise<void>,
  ): string {
    return startTask(this.core, { ...task, host: this.host, user: this.authUser }, work);
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
  const target = { host: task.host, taskType: task.type, vmId: Number(task.id) };
  if (core.faults.take(['no-worker'], target) !== undefined) {
    throw serverError('got no worker upid - start worker failed');
  }
  const host = core.state.hosts.get(task.host);
  const pid = host === undefined ? 1000 : (host.nextPid += 1 + core.state.random.integer(5));
  return core.tasks.start({ ...task, id: String(task.id ?? ''), pid: pid % 4_000_000 }, work);
}

export interface VmLock {
  readonly host: string;
  readonly id: number;
  readonly timeoutMs?: number;
  readonly shared?: boolean;
}

/** Runs work under the VM's file lock on its host. */
export function withVmLock<T>(core: Core, lock: VmLock, work: () => Promise<T>): Promise<T> {
  const file = `/var/lock/qemu-server/lock-${lock.id}.conf`;
  const timeoutMs = (lock.timeoutMs ?? SIMULATED_TIMEOUTS_MS.configLock) / core.state.speed;
  const onTimeout = () => serverError(`can't lock file '${file}' - got timeout`);
  return core.locks.withLock(
    { name: `${lock.host}:${file}`, shared: lock.shared === true, timeoutMs, onTimeout },
    work,
  );
}

/** Writes need quorum. */
export function requireQuorum(core: Core): void {
  if (!core.state.quorate) throw serverError('cluster not ready - no quorum?');
}
