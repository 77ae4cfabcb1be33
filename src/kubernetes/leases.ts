// SPDX-License-Identifier: Apache-2.0
// Leader election on Lease objects. Every write names the version it is based on, so of many only one succeeds;
// and nobody's clock is believed: a lease has expired when this process has watched it not change for as long as
// it lasts.
import { leaseExpiry } from '../model/lease.ts';
import type { Clock } from '../ports/clock.ts';
import {
  type ClusterCallOptions,
  type ClusterLease,
  type ClusterLeaseRequest,
  mayAct,
  type ReleaseOptions,
  type TakenLease,
} from '../ports/cluster.ts';
import { Conflict, LostLeadership } from '../ports/errors.ts';
import { type Api, FIELD_MANAGER, pathOf } from './api.ts';
import type { LeaseObject } from './objects.ts';
import { type ApiStatus, translateStatus } from './status.ts';

const DEFAULT_SECONDS = 15;
/** A released one has a duration of this, and as much more as requests of its holder may still take effect. */
const RELEASED_SECONDS = 1;

interface Sighting {
  /** Empty: it was not there. */
  readonly version: string;
  readonly at: number;
  /** Who held it then, or before it was removed. */
  readonly holder: string;
  readonly durationMs: number;
}

type Standing =
  | { readonly isFree: false; readonly holder: string }
  | ({ readonly isFree: true } & Pick<TakenLease, 'unsettledMs'>);

interface Writing extends ClusterLeaseRequest {
  readonly token: number;
  /** Of the object it is based on; undefined: there is none yet. */
  readonly base: LeaseObject | undefined;
}

type Written =
  | { readonly ok: true; readonly lease: ClusterLease }
  | { readonly ok: false; readonly status: ApiStatus };

export interface LeasesOptions {
  readonly api: Api;
  readonly clock: Clock;
  readonly namespace: string;
}

export class Leases {
  readonly #api: Api;
  readonly #clock: Clock;
  readonly #namespace: string;
  readonly #seen = new Map<string, Sighting>();
  /** What was known when a lease was last asked for: the answer may get lost, and then it is ours already. */
  readonly #unsettled = new Map<string, number | undefined>();

  constructor(options: LeasesOptions) {
    this.#api = options.api;
    this.#clock = options.clock;
    this.#namespace = options.namespace;
  }

  async acquire(
    request: ClusterLeaseRequest,
    { signal }: ClusterCallOptions = {},
  ): Promise<TakenLease> {
    const { name } = request;
    const askedAt = this.#clock.monotonic();
    const base = await this.#read(name, signal);
    const standing = this.#standing(base, request, askedAt);
    if (!standing.isFree) throw held(name, standing.holder);
    const { unsettledMs } = standing;
    this.#unsettled.set(name, unsettledMs);
    const token = (base?.spec?.leaseTransitions ?? 0) + 1;
    const written = await this.#take({ ...request, token, base }, signal);
    if (written.ok) {
      this.#seen.delete(name);
      return { ...written.lease, unsettledMs };
    }
    // Somebody was faster; whoever it was, it is theirs now.
    if (written.status.code === 409) throw held(name, holderOf(await this.#read(name, signal)));
    throw translateStatus(written.status, `take lease ${name}`);
  }

  async renew(
    lease: ClusterLease,
    durationMs: number,
    { signal }: ClusterCallOptions = {},
  ): Promise<ClusterLease> {
    if (!mayAct(lease, this.#clock)) throw lost(lease);
    const base = await this.#read(lease.name, signal);
    // Looked at again, because the answer may have taken long: an expired lease is nobody's to renew.
    if (!isTheirs(base, lease) || !mayAct(lease, this.#clock)) throw lost(lease);
    const { name, holder, token } = lease;
    const written = await this.#write({ name, holder, durationMs, token, base }, signal);
    if (written.ok) return written.lease;
    if (written.status.code === 404) throw lost(lease);
    // 409: changed since it was read, which may have been an earlier try of ours; the next one reads again.
    throw translateStatus(written.status, `renew lease ${name}`);
  }

  async release(
    lease: ClusterLease,
    { signal, unsettledMs = 0 }: ReleaseOptions = {},
  ): Promise<void> {
    const { name, token } = lease;
    const durationMs = RELEASED_SECONDS * 1_000 + unsettledMs;
    // The second time for a renewal of ours that came in between; what else changes it makes it somebody else's.
    for (const isLast of [false, true]) {
      const base = await this.#read(name, signal);
      if (!isTheirs(base, lease)) return;
      const written = await this.#write({ name, holder: '', durationMs, token, base }, signal);
      if (written.ok || written.status.code === 404) return;
      if (written.status.code !== 409)
        throw translateStatus(written.status, `release lease ${name}`);
      if (isLast) return;
    }
  }

  async #take(writing: Writing, signal: AbortSignal | undefined): Promise<Written> {
    const written = await this.#write(writing, signal);
    const isNowhere = !written.ok && written.status.code === 404 && writing.base === undefined;
    if (!isNowhere) return written;
    await this.#makeNamespace(signal);
    return this.#write(writing, signal);
  }

  #standing(
    base: LeaseObject | undefined,
    { name, holder: asker }: ClusterLeaseRequest,
    askedAt: number,
  ): Standing {
    if (base === undefined) {
      const last = this.#seen.get(name);
      if (last === undefined) return { isFree: true, unsettledMs: 0 };
      return this.#watch(name, { ...last, version: '' }, askedAt);
    }
    const holder = holderOf(base);
    // Its own name may take it: this process lost an answer, or is the successor of one that had the name.
    if (holder === asker) return { isFree: true, unsettledMs: this.#unsettled.get(name) };
    const durationMs = (base.spec?.leaseDurationSeconds ?? DEFAULT_SECONDS) * 1_000;
    if (holder === '') {
      this.#seen.delete(name);
      return { isFree: true, unsettledMs: Math.max(0, durationMs - RELEASED_SECONDS * 1_000) };
    }
    const version = base.metadata.resourceVersion ?? '';
    return this.#watch(name, { version, holder, durationMs }, askedAt);
  }

  #watch(name: string, sight: Omit<Sighting, 'at'>, askedAt: number): Standing {
    const last = this.#seen.get(name);
    const { holder, version } = sight;
    if (last?.version !== version) {
      this.#seen.set(name, { ...sight, at: this.#clock.monotonic() });
      return { isFree: false, holder };
    }
    // From after the first sight of it until before this one was asked for: the shorter of all readings.
    const isOver = askedAt - last.at >= last.durationMs;
    return isOver ? { isFree: true, unsettledMs: undefined } : { isFree: false, holder };
  }

  async #read(name: string, signal: AbortSignal | undefined): Promise<LeaseObject | undefined> {
    const doing = `read lease ${name}`;
    const answer = await this.#api.ask<LeaseObject>({ path: this.#path(name), doing, signal });
    if (answer.ok) return answer.value;
    if (answer.status.code === 404) return undefined;
    throw translateStatus(answer.status, doing);
  }

  async #write(writing: Writing, signal: AbortSignal | undefined): Promise<Written> {
    const { name, holder, token, base } = writing;
    const seconds = Math.max(1, Math.ceil(writing.durationMs / 1_000));
    // Counted from before it is sent: a successor counts from after it saw it, which is later.
    const sentAt = this.#clock.monotonic();
    const expiresAt = leaseExpiry(this.#clock.now(), seconds * 1_000);
    const isNew = base === undefined;
    const answer = await this.#api.ask({
      method: isNew ? 'POST' : 'PUT',
      path: isNew ? this.#path() : this.#path(name),
      query: { fieldManager: FIELD_MANAGER },
      body: this.#object(writing, seconds),
      doing: `write lease ${name}`,
      signal,
    });
    if (!answer.ok) return answer;
    const lease = { name, holder, token, expiresAt, actUntil: sentAt + seconds * 1_000 };
    return { ok: true, lease };
  }

  #object({ name, holder, token, base }: Writing, seconds: number): LeaseObject {
    const now = microTime(this.#clock.now());
    const isSame = base?.spec?.leaseTransitions === token && base.spec.acquireTime !== undefined;
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: base?.metadata ?? { name: objectName(name), namespace: this.#namespace },
      spec: {
        holderIdentity: holder,
        leaseDurationSeconds: seconds,
        leaseTransitions: token,
        acquireTime: isSame ? (base.spec?.acquireTime ?? now) : now,
        renewTime: now,
      },
    };
  }

  /** Outside the manifests, under a person's own account, it may not be there yet. */
  async #makeNamespace(signal: AbortSignal | undefined): Promise<void> {
    const doing = `create namespace ${this.#namespace}`;
    const metadata = { name: this.#namespace };
    const answer = await this.#api.ask({
      method: 'POST',
      path: '/api/v1/namespaces',
      body: { apiVersion: 'v1', kind: 'Namespace', metadata },
      doing,
      signal,
    });
    if (!answer.ok && answer.status.code !== 409) throw translateStatus(answer.status, doing);
  }

  #path(name?: string): string {
    const api = pathOf('apis', 'coordination.k8s.io', 'v1', 'namespaces', this.#namespace);
    return `${api}/leases${name === undefined ? '' : pathOf(objectName(name))}`;
  }
}

/** Unmistakable, also where the namespace is shared. */
export function objectName(name: string): string {
  return `pvescaler-${name}`;
}

function isTheirs(base: LeaseObject | undefined, { holder, token }: ClusterLease): boolean {
  return holderOf(base) === holder && base?.spec?.leaseTransitions === token;
}

function holderOf(base: LeaseObject | undefined): string {
  return base?.spec?.holderIdentity ?? '';
}

/** Times of leases have six digits after the second. */
function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}

function held(name: string, holder: string): Conflict {
  const message = `lease ${name} is held by ${holder === '' ? 'somebody' : holder}`;
  return new Conflict('LEASE_HELD', message, { facts: { holder } });
}

function lost({ name, holder }: ClusterLease): LostLeadership {
  return new LostLeadership('LEASE_LOST', `lease ${name} is no longer ${holder}'s`);
}
