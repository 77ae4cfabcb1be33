// SPDX-License-Identifier: Apache-2.0
import { leaseExpiry } from '../../model/lease.ts';
import type { Clock } from '../clock.ts';
import type { ClusterLease, ClusterLeaseRequest } from '../cluster.ts';
import { Conflict, LostLeadership } from '../errors.ts';
import type { LeaseRecord, MemoryClusterState } from './memory-cluster-state.ts';

interface Sighting {
  readonly version: number;
  readonly at: number;
}

/** The leases as one process sees them: what it has watched not change, and for how long, is its own knowledge. */
export class MemoryClusterLeases {
  readonly #state: MemoryClusterState;
  readonly #clock: Clock;
  readonly #seen = new Map<string, Sighting>();

  constructor(state: MemoryClusterState, clock: Clock) {
    this.#state = state;
    this.#clock = clock;
  }

  acquire({ name, holder, durationMs }: ClusterLeaseRequest): ClusterLease {
    const current = this.#state.leases.get(name);
    if (current !== undefined && !this.#isFree(name, current, holder)) {
      throw new Conflict('LEASE_HELD', `lease ${name} is held by ${current.holder}`, {
        facts: { holder: current.holder },
      });
    }
    return this.#write({ name, holder, durationMs, token: (current?.token ?? 0) + 1 });
  }

  renew(lease: ClusterLease, durationMs: number): ClusterLease {
    if (!this.#isTheirs(lease)) throw lost(lease);
    return this.#write({ ...lease, durationMs });
  }

  release(lease: ClusterLease): void {
    if (this.#isTheirs(lease)) this.#write({ ...lease, holder: '', durationMs: 1_000 });
  }

  #isTheirs({ name, holder, token }: ClusterLease): boolean {
    const current = this.#state.leases.get(name);
    return current?.holder === holder && current.token === token;
  }

  #isFree(name: string, current: LeaseRecord, asker: string): boolean {
    if (current.holder === '' || current.holder === asker) return true;
    const seen = this.#seen.get(name);
    if (seen?.version === current.version) {
      return this.#clock.monotonic() - seen.at >= current.durationMs;
    }
    this.#seen.set(name, { version: current.version, at: this.#clock.monotonic() });
    return false;
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
