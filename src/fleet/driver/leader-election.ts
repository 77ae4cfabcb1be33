// SPDX-License-Identifier: Apache-2.0
// The Lease in Kubernetes, for drivers that do not share a store. Its holder stops beginning anything so long before
// the end that what it began is over by then; who takes it from somebody who died waits as long once more, for a request
// that was on its way then. Who is given it waits as long as the giver says. Either looks twice before it acts.
import { RECONCILE_LEASE } from '../../model/lease.ts';
import type { Cluster, ClusterLease, TakenLease } from '../../ports/cluster.ts';
import { asPvescalerError, Cancelled, LostLeadership, Unreachable } from '../../ports/errors.ts';
import { type Deadline, type DriverLease, isBefore, PAST } from '../context/driver-lease.ts';
import type { FleetOptions } from '../context/options.ts';
import { readRegionViews } from '../context/region-views.ts';

/** No request to Proxmox is waited for longer than this, unless the settings say so. */
export const MAX_REQUEST_MS = 36_000;
/** For acting: a renewal may fail twice before it is over. */
const ACTING_MS = 14_000;
const RENEW_MS = 5_000;
const RETRY_MS = 1_000;
const REQUIRED_READS = 2;
const BETWEEN_READS_MS = 2_000;

export interface ElectionEvents {
  readonly onWaiting?: ((holder: string) => void) | undefined;
  readonly onError?: ((error: ReturnType<typeof asPvescalerError>) => void) | undefined;
  /** Now and then while a takeover waits. */
  readonly onHeartbeat?: (() => void) | undefined;
}

export class LeaderElection implements DriverLease {
  readonly #options: FleetOptions;
  readonly #cluster: Cluster;
  readonly #lost = new AbortController();
  readonly #over = new AbortController();
  readonly #maxRequestMs: number;
  #lease: ClusterLease | undefined;
  #isTakenOver = false;
  /** When requests of whoever had the lease before can no longer take effect. */
  #settledAt = Number.NEGATIVE_INFINITY;
  #keeping: Promise<unknown> = Promise.resolve();

  constructor(options: FleetOptions, cluster: Cluster) {
    this.#options = options;
    this.#cluster = cluster;
    this.#maxRequestMs = Math.max(MAX_REQUEST_MS, options.settings.maxRequestMs ?? 0);
  }

  get #durationMs(): number {
    return this.#maxRequestMs + ACTING_MS;
  }

  /** Aborted when the lease is lost, or so near its end that nothing may be begun. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  mayAct(): boolean {
    return isBefore(this.until(), this.#options.clock);
  }

  /** What is begun before then is over when the lease is. */
  until(): Deadline {
    const lease = this.#lease;
    if (lease === undefined || this.#lost.signal.aborted) return PAST;
    return {
      wall: lease.expiresAt - this.#maxRequestMs,
      monotonic: lease.actUntil - this.#maxRequestMs,
    };
  }

  /** False when called off. Resolves when this process may act. */
  async win(signal: AbortSignal, events: ElectionEvents): Promise<boolean> {
    const taken = await this.#acquire(signal, events);
    if (taken === undefined) return false;
    this.#lease = taken;
    this.#keeping = Promise.all([this.#renew(), this.#guard()]);
    const settlingMs = taken.unsettledMs ?? this.#maxRequestMs;
    this.#settledAt = this.#options.clock.monotonic() + settlingMs;
    if (!this.#isTakenOver && settlingMs === 0) return true;
    try {
      const going = AbortSignal.any([signal, this.#lost.signal]);
      await this.#settle(settlingMs, going, events);
      await this.#confirmReadable(going, events);
      return true;
    } catch (error) {
      if (error instanceof Cancelled) return false;
      throw error;
    }
  }

  /** Nothing may be begun any more when this is called. */
  async resign(): Promise<void> {
    this.#over.abort();
    await this.#keeping;
    const lease = this.#lease;
    this.#lease = undefined;
    if (lease === undefined) return;
    const unsettledMs = this.#unsettledMs();
    await this.#cluster.releaseLease(lease, { unsettledMs }).catch(() => undefined);
  }

  /** Of this process, and of the one before it: who is called off while it waits for that one passes the waiting on. */
  #unsettledMs(): number {
    const { driverRegistry, clock } = this.#options;
    // Who keeps no account of what was sent cannot say that it is over.
    const own = driverRegistry?.unsettledMs(this.#maxRequestMs) ?? this.#maxRequestMs;
    return Math.max(own, this.#settledAt - clock.monotonic());
  }

  async #acquire(signal: AbortSignal, events: ElectionEvents): Promise<TakenLease | undefined> {
    const { clock, settings } = this.#options;
    const request = {
      name: RECONCILE_LEASE,
      holder: settings.holder,
      durationMs: this.#durationMs,
    };
    while (!signal.aborted) {
      try {
        return await this.#cluster.acquireLease(request, { signal });
      } catch (error) {
        const ours = asPvescalerError(error);
        if (ours instanceof Cancelled) return undefined;
        if (ours.class === 'Bug') throw ours;
        if (ours.code === 'LEASE_HELD') {
          this.#isTakenOver = true;
          events.onWaiting?.(String(ours.facts['holder']));
        } else events.onError?.(ours);
        await clock.sleep(RETRY_MS, { signal }).catch(() => undefined);
      }
    }
    return undefined;
  }

  // oxlint-disable-next-line max-params -- how long, until when, and who hears of it
  async #settle(ms: number, signal: AbortSignal, events: ElectionEvents): Promise<void> {
    const { clock } = this.#options;
    const until = clock.monotonic() + ms;
    for (let leftMs = ms; leftMs > 0; leftMs = until - clock.monotonic()) {
      await clock.sleep(Math.min(leftMs, RETRY_MS), { signal });
      events.onHeartbeat?.();
    }
  }

  /** While nothing can be read there is nothing to act on either; why not is told once. */
  async #confirmReadable(
    signal: AbortSignal,
    { onHeartbeat, onError }: ElectionEvents,
  ): Promise<void> {
    const { clock, hypervisors } = this.#options;
    let isTold = false;
    for (let looks = 0; looks < REQUIRED_READS; ) {
      if (looks > 0 || isTold) await clock.sleep(BETWEEN_READS_MS, { signal });
      const { views, stale } = await readRegionViews(this.#options, signal);
      onHeartbeat?.();
      if (views.size > 0 || hypervisors.size === 0) {
        looks += 1;
      } else if (!isTold) {
        isTold = true;
        const why = Object.values(stale).join('; ');
        onError?.(new Unreachable('PVE_UNREACHABLE', `the takeover waits: ${why}`));
      }
    }
  }

  async #renew(): Promise<void> {
    const { clock } = this.#options;
    const signal = AbortSignal.any([this.#over.signal, this.#lost.signal]);
    for (;;) {
      await clock.sleep(RENEW_MS, { signal }).catch(() => undefined);
      if (signal.aborted || this.#lease === undefined) return;
      try {
        this.#lease = await this.#cluster.renewLease(this.#lease, this.#durationMs, { signal });
      } catch (error) {
        if (error instanceof LostLeadership) this.#lost.abort();
      }
    }
  }

  /** A renewal may hang; the end of the lease does not wait for it. */
  async #guard(): Promise<void> {
    const { clock } = this.#options;
    const signal = AbortSignal.any([this.#over.signal, this.#lost.signal]);
    while (!signal.aborted) {
      if (!this.mayAct()) {
        this.#lost.abort();
        return;
      }
      await clock.sleep(RETRY_MS, { signal }).catch(() => undefined);
    }
  }
}
