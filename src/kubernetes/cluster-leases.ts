// SPDX-License-Identifier: Apache-2.0
// Leader election on Lease objects. Every write names a resource version, so one of several concurrent writes succeeds.
// No other clock is trusted: a lease has expired once this process has seen it unchanged for its whole duration.
import { leaseExpiry } from '../model/lease.ts';
import type { Clock } from '../ports/clock.ts';
import {
  type AcquiredLease,
  type ClusterCallOptions,
  type ClusterLease,
  type ClusterLeaseRequest,
  mayAct,
  type ReleaseOptions,
} from '../ports/cluster.ts';
import { Conflict, LostLeadership } from '../ports/errors.ts';
import { type ApiClient, apiPath, FIELD_MANAGER } from './api-client.ts';
import { formatMicroTime, type LeaseObject } from './objects.ts';
import { type ApiStatus, translateStatus } from './status.ts';

const DEFAULT_SECONDS = 15;
/** Duration of a released lease, plus the time for which requests of its holder may still take effect. */
const RELEASED_SECONDS = 1;

interface Observation {
  /** Resource version; empty: the Lease did not exist. */
  readonly version: string;
  /** Monotonic clock. */
  readonly at: number;
  /** The holder, or the last one before the Lease was removed. */
  readonly holder: string;
  readonly durationMs: number;
}

type Availability =
  | { readonly isFree: false; readonly holder: string }
  | ({ readonly isFree: true } & Pick<AcquiredLease, 'unsettledMs'>);

interface LeaseWrite extends ClusterLeaseRequest {
  readonly token: number;
  /** The object that the write replaces; undefined: it does not exist yet. */
  readonly base: LeaseObject | undefined;
}

type LeaseWriteResult =
  | { readonly ok: true; readonly lease: ClusterLease }
  | { readonly ok: false; readonly status: ApiStatus };

interface ClusterLeasesOptions {
  readonly api: ApiClient;
  readonly clock: Clock;
  readonly namespace: string;
}

export class ClusterLeases {
  readonly #api: ApiClient;
  readonly #clock: Clock;
  readonly #namespace: string;
  readonly #observed = new Map<string, Observation>();
  /** `unsettledMs` of the last attempt per lease: when its response was lost, the next attempt finds the lease ours. */
  readonly #unsettled = new Map<string, number | undefined>();

  constructor(options: ClusterLeasesOptions) {
    this.#api = options.api;
    this.#clock = options.clock;
    this.#namespace = options.namespace;
  }

  async acquire(
    request: ClusterLeaseRequest,
    { signal }: ClusterCallOptions = {},
  ): Promise<AcquiredLease> {
    const { name } = request;
    const requestedAt = this.#clock.monotonic();
    const base = await this.#read(name, signal);
    const availability = this.#checkAvailability(base, request, requestedAt);
    if (!availability.isFree) throw leaseHeld(name, availability.holder);
    const { unsettledMs } = availability;
    this.#unsettled.set(name, unsettledMs);
    const token = (base?.spec?.leaseTransitions ?? 0) + 1;
    const written = await this.#acquire({ ...request, token, base }, signal);
    if (written.ok) {
      this.#observed.delete(name);
      return { ...written.lease, unsettledMs };
    }
    // Another process was faster and holds the lease now.
    if (written.status.code === 409)
      throw leaseHeld(name, holderOf(await this.#read(name, signal)));
    throw translateStatus(written.status, `acquire lease ${name}`);
  }

  async renew(
    lease: ClusterLease,
    durationMs: number,
    { signal }: ClusterCallOptions = {},
  ): Promise<ClusterLease> {
    if (!mayAct(lease, this.#clock)) throw leaseLost(lease);
    const base = await this.#read(lease.name, signal);
    // Checked again, because the read may have taken long: an expired lease must not be renewed.
    if (!isHeldBy(base, lease) || !mayAct(lease, this.#clock)) throw leaseLost(lease);
    const { name, holder, token } = lease;
    const written = await this.#write({ name, holder, durationMs, token, base }, signal);
    if (written.ok) return written.lease;
    if (written.status.code === 404) throw leaseLost(lease);
    // 409: changed since it was read, possibly by an earlier attempt of ours; the next attempt reads it again.
    throw translateStatus(written.status, `renew lease ${name}`);
  }

  async release(
    lease: ClusterLease,
    { signal, unsettledMs = 0 }: ReleaseOptions = {},
  ): Promise<void> {
    const { name, token } = lease;
    const durationMs = RELEASED_SECONDS * 1_000 + unsettledMs;
    // The second attempt covers a concurrent renewal of ours; after any other change the lease is no longer ours.
    for (const isLast of [false, true]) {
      const base = await this.#read(name, signal);
      if (!isHeldBy(base, lease)) return;
      const written = await this.#write({ name, holder: '', durationMs, token, base }, signal);
      if (written.ok || written.status.code === 404) return;
      if (written.status.code !== 409)
        throw translateStatus(written.status, `release lease ${name}`);
      if (isLast) return;
    }
  }

  async #acquire(write: LeaseWrite, signal: AbortSignal | undefined): Promise<LeaseWriteResult> {
    const written = await this.#write(write, signal);
    const isNamespaceMissing =
      !written.ok && written.status.code === 404 && write.base === undefined;
    if (!isNamespaceMissing) return written;
    await this.#createNamespace(signal);
    return this.#write(write, signal);
  }

  #checkAvailability(
    base: LeaseObject | undefined,
    { name, holder: requester, ended }: ClusterLeaseRequest,
    requestedAt: number,
  ): Availability {
    if (base === undefined) {
      const last = this.#observed.get(name);
      if (last === undefined) return { isFree: true, unsettledMs: 0 };
      return this.#observe(name, { ...last, version: '' }, requestedAt);
    }
    const holder = holderOf(base);
    // The same holder may acquire again: this process lost a response, or it replaces one with the same name.
    if (holder === requester) return { isFree: true, unsettledMs: this.#unsettled.get(name) };
    if (holder !== '' && holder === ended?.holder) {
      return { isFree: true, unsettledMs: ended.unsettledMs };
    }
    const durationMs = (base.spec?.leaseDurationSeconds ?? DEFAULT_SECONDS) * 1_000;
    if (holder === '') {
      this.#observed.delete(name);
      return { isFree: true, unsettledMs: Math.max(0, durationMs - RELEASED_SECONDS * 1_000) };
    }
    const version = base.metadata.resourceVersion ?? '';
    return this.#observe(name, { version, holder, durationMs }, requestedAt);
  }

  #observe(name: string, current: Omit<Observation, 'at'>, requestedAt: number): Availability {
    const last = this.#observed.get(name);
    const { holder, version } = current;
    if (last?.version !== version) {
      this.#observed.set(name, { ...current, at: this.#clock.monotonic() });
      return { isFree: false, holder };
    }
    // From after the first observation until before this request: the shortest possible estimate.
    const hasExpired = requestedAt - last.at >= last.durationMs;
    return hasExpired ? { isFree: true, unsettledMs: undefined } : { isFree: false, holder };
  }

  async #read(name: string, signal: AbortSignal | undefined): Promise<LeaseObject | undefined> {
    const operation = `read lease ${name}`;
    const result = await this.#api.request<LeaseObject>({
      path: this.#path(name),
      operation,
      signal,
    });
    if (result.ok) return result.value;
    if (result.status.code === 404) return undefined;
    throw translateStatus(result.status, operation);
  }

  async #write(write: LeaseWrite, signal: AbortSignal | undefined): Promise<LeaseWriteResult> {
    const { name, holder, token, base } = write;
    const seconds = Math.max(1, Math.ceil(write.durationMs / 1_000));
    // Counted from before the request is sent: other processes count from when they observe it, which is later.
    const sentAt = this.#clock.monotonic();
    const expiresAt = leaseExpiry(this.#clock.now(), seconds * 1_000);
    const isNew = base === undefined;
    const result = await this.#api.request({
      method: isNew ? 'POST' : 'PUT',
      path: isNew ? this.#path() : this.#path(name),
      query: { fieldManager: FIELD_MANAGER },
      body: this.#buildLease(write, seconds),
      operation: `write lease ${name}`,
      signal,
    });
    if (!result.ok) return result;
    const lease = { name, holder, token, expiresAt, actUntil: sentAt + seconds * 1_000 };
    return { ok: true, lease };
  }

  #buildLease({ name, holder, token, base }: LeaseWrite, seconds: number): LeaseObject {
    const now = formatMicroTime(this.#clock.now());
    const isRenewal = base?.spec?.leaseTransitions === token && base.spec.acquireTime !== undefined;
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: base?.metadata ?? { name: leaseObjectName(name), namespace: this.#namespace },
      spec: {
        holderIdentity: holder,
        leaseDurationSeconds: seconds,
        leaseTransitions: token,
        acquireTime: isRenewal ? (base.spec?.acquireTime ?? now) : now,
        renewTime: now,
      },
    };
  }

  /** Without the manifests, when a user runs the CLI, the namespace may not exist yet. */
  async #createNamespace(signal: AbortSignal | undefined): Promise<void> {
    const operation = `create namespace ${this.#namespace}`;
    const metadata = { name: this.#namespace };
    const result = await this.#api.request({
      method: 'POST',
      path: '/api/v1/namespaces',
      body: { apiVersion: 'v1', kind: 'Namespace', metadata },
      operation,
      signal,
    });
    if (!result.ok && result.status.code !== 409) throw translateStatus(result.status, operation);
  }

  #path(name?: string): string {
    const api = apiPath('apis', 'coordination.k8s.io', 'v1', 'namespaces', this.#namespace);
    return `${api}/leases${name === undefined ? '' : apiPath(leaseObjectName(name))}`;
  }
}

/** Prefixed, because the namespace may be shared. */
export function leaseObjectName(name: string): string {
  return `pvescaler-${name}`;
}

function isHeldBy(base: LeaseObject | undefined, { holder, token }: ClusterLease): boolean {
  return holderOf(base) === holder && base?.spec?.leaseTransitions === token;
}

function holderOf(base: LeaseObject | undefined): string {
  return base?.spec?.holderIdentity ?? '';
}

function leaseHeld(name: string, holder: string): Conflict {
  const message = `lease ${name} is held by ${holder === '' ? 'another process' : holder}`;
  return new Conflict('LEASE_HELD', message, { facts: { holder } });
}

function leaseLost({ name, holder }: ClusterLease): LostLeadership {
  return new LostLeadership('LEASE_LOST', `${holder} no longer holds lease ${name}`);
}
