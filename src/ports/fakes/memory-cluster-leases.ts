// SPDX-License-Identifier: Apache-2.0
import { leaseExpiry } from '../../model/lease.ts';
import type { Clock } from '../clock.ts';
import type { AcquiredLease, ClusterLease, ClusterLeaseRequest } from '../cluster.ts';
import { Conflict, LostLeadership } from '../errors.ts';
import type { LeaseRecord, MemoryClusterState } from './memory-cluster-state.ts';

interface Observation {
  /** Zero: the Lease did not exist. */
  readonly version: number;
  readonly at: number;
  readonly holder: string;
  readonly durationMs: number;
}

const RELEASED_MS = 1_000;

/** The leases as one process sees them; each process has its own observations of unchanged leases. */
export class MemoryClusterLeases {
  readonly #state: MemoryClusterState;
  readonly #clock: Clock;
  readonly #observed = new Map<string, Observation>();
  readonly #unsettled = new Map<string, number | undefined>();

  constructor(state: MemoryClusterState, clock: Clock) {
    this.#state = state;
    this.#clock = clock;
  }

  acquire({ name, holder, durationMs, ended }: ClusterLeaseRequest): AcquiredLease {
    const current = this.#state.leases.get(name);
    const hasEnded = ended !== undefined && current?.holder === ended.holder;
    const unsettledMs = hasEnded ? ended.unsettledMs : this.#assertFree(name, current, holder);
    this.#unsettled.set(name, unsettledMs);
    this.#observed.delete(name);
    const token = (current?.token ?? 0) + 1;
    return { ...this.#write({ name, holder, durationMs, token }), unsettledMs };
  }

  renew(lease: ClusterLease, durationMs: number): ClusterLease {
    if (!this.#isHeldBy(lease)) throw leaseLost(lease);
    return this.#write({ ...lease, durationMs });
  }

  release(lease: ClusterLease, unsettledMs: number): void {
    if (!this.#isHeldBy(lease)) return;
    this.#write({ ...lease, holder: '', durationMs: RELEASED_MS + unsettledMs });
  }

  #isHeldBy({ name, holder, token }: ClusterLease): boolean {
    const current = this.#state.leases.get(name);
    return current?.holder === holder && current.token === token;
  }

  /** Returns `unsettledMs` of the previous holder; throws LEASE_HELD if the lease is not free. */
  #assertFree(
    name: string,
    current: LeaseRecord | undefined,
    requester: string,
  ): number | undefined {
    if (current === undefined) {
      const last = this.#observed.get(name);
      return last === undefined ? 0 : this.#assertExpired(name, { ...last, version: 0 });
    }
    if (current.holder === requester) return this.#unsettled.get(name);
    if (current.holder === '') return current.durationMs - RELEASED_MS;
    return this.#assertExpired(name, current);
  }

  #assertExpired(
    name: string,
    { version, holder, durationMs }: Omit<Observation, 'at'>,
  ): undefined {
    const last = this.#observed.get(name);
    const at = this.#clock.monotonic();
    if (last?.version !== version) this.#observed.set(name, { version, holder, durationMs, at });
    else if (at - last.at >= last.durationMs) return undefined;
    throw new Conflict('LEASE_HELD', `lease ${name} is held by ${holder}`, { facts: { holder } });
  }

  #write(lease: ClusterLeaseRequest & { readonly token: number }): ClusterLease {
    const { name, holder, token } = lease;
    const durationMs = Math.max(1, Math.ceil(lease.durationMs / 1_000)) * 1_000;
    const version = (this.#state.leases.get(name)?.version ?? 0) + 1;
    this.#state.leases.set(name, { holder, token, durationMs, version });
    const expiresAt = leaseExpiry(this.#clock.now(), durationMs);
    return { name, holder, token, expiresAt, actUntil: this.#clock.monotonic() + durationMs };
  }
}

export function leaseLost({ name, holder }: ClusterLease): LostLeadership {
  return new LostLeadership('LEASE_LOST', `${holder} no longer holds lease ${name}`);
}
