// SPDX-License-Identifier: Apache-2.0
import { leaseExpiry } from '../../model/lease.ts';
import type { Clock } from '../clock.ts';
import type { ClusterLease, ClusterLeaseRequest, TakenLease } from '../cluster.ts';
import { Conflict, LostLeadership } from '../errors.ts';
import type { LeaseRecord, MemoryClusterState } from './memory-cluster-state.ts';

interface Sighting {
  /** Zero: it was not there. */
  readonly version: number;
  readonly at: number;
  readonly holder: string;
  readonly durationMs: number;
}

const RELEASED_MS = 1_000;

/** The leases as one process sees them: what it has watched not change, and for how long, is its own knowledge. */
export class MemoryClusterLeases {
  readonly #state: MemoryClusterState;
  readonly #clock: Clock;
  readonly #seen = new Map<string, Sighting>();
  readonly #unsettled = new Map<string, number | undefined>();

  constructor(state: MemoryClusterState, clock: Clock) {
    this.#state = state;
    this.#clock = clock;
  }

  acquire({ name, holder, durationMs }: ClusterLeaseRequest): TakenLease {
    const current = this.#state.leases.get(name);
    const unsettledMs = this.#demandFree(name, current, holder);
    this.#unsettled.set(name, unsettledMs);
    this.#seen.delete(name);
    const token = (current?.token ?? 0) + 1;
    return { ...this.#write({ name, holder, durationMs, token }), unsettledMs };
  }

  renew(lease: ClusterLease, durationMs: number): ClusterLease {
    if (!this.#isTheirs(lease)) throw lost(lease);
    return this.#write({ ...lease, durationMs });
  }

  release(lease: ClusterLease, unsettledMs: number): void {
    if (!this.#isTheirs(lease)) return;
    this.#write({ ...lease, holder: '', durationMs: RELEASED_MS + unsettledMs });
  }

  #isTheirs({ name, holder, token }: ClusterLease): boolean {
    const current = this.#state.leases.get(name);
    return current?.holder === holder && current.token === token;
  }

  /** What is known of the requests of whoever had it. */
  #demandFree(name: string, current: LeaseRecord | undefined, asker: string): number | undefined {
    if (current === undefined) {
      const last = this.#seen.get(name);
      return last === undefined ? 0 : this.#demandOver(name, { ...last, version: 0 });
    }
    if (current.holder === asker) return this.#unsettled.get(name);
    if (current.holder === '') return current.durationMs - RELEASED_MS;
    return this.#demandOver(name, current);
  }

  #demandOver(name: string, { version, holder, durationMs }: Omit<Sighting, 'at'>): undefined {
    const last = this.#seen.get(name);
    const at = this.#clock.monotonic();
    if (last?.version !== version) this.#seen.set(name, { version, holder, durationMs, at });
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

export function lost({ name, holder }: ClusterLease): LostLeadership {
  return new LostLeadership('LEASE_LOST', `lease ${name} is no longer ${holder}'s`);
}
