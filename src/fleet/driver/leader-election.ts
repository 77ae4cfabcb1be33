// SPDX-License-Identifier: Apache-2.0
// The Lease in Kubernetes, for drivers that do not share a store. The holder starts no request that could still run when
// the Lease ends. A process that takes over from a dead holder waits for the duration of the longest request, because
// one of the holder's may still take effect; after a release it waits as long as the former holder says, and after a
// holder that is known to have ended (DriverLock) as long as that one noted. Then it reads every region twice before it
// acts.
import { RECONCILE_LEASE } from '../../model/lease.ts';
import type {
  AcquiredLease,
  Cluster,
  ClusterLease,
  ClusterLeaseRequest,
} from '../../ports/cluster.ts';
import type { EndedDriver } from '../../ports/driver-lock.ts';
import { asPvescalerError, Cancelled, LostLeadership, Unreachable } from '../../ports/errors.ts';
import { type Deadline, type DriverLease, isBefore, PAST } from '../context/driver-lease.ts';
import type { FleetOptions } from '../context/options.ts';
import { type RegionReading, recentRegionViews } from '../context/region-views.ts';
import { keepRenewing } from './keep-renewing.ts';

/** Maximum duration of a request to Proxmox, unless the settings say otherwise. */
export const MAX_REQUEST_MS = 36_000;
export function maxRequestMs({ settings }: Pick<FleetOptions, 'settings'>): number {
  return Math.max(MAX_REQUEST_MS, settings.maxRequestMs ?? 0);
}

/** Time to start requests after a renewal: two renewals may fail before it is over. */
const START_WINDOW_MS = 14_000;
const RENEW_MS = 5_000;
const RETRY_MS = 1_000;
const REQUIRED_READS = 2;
const BETWEEN_READS_MS = 2_000;

export interface ElectionEvents {
  readonly onWaiting?: ((holder: string) => void) | undefined;
  /** Once, when `holder` holds the Lease without the lease in this process's store: it uses another store. */
  readonly onSeparateStore?: ((holder: string) => void) | undefined;
  readonly onError?: ((error: ReturnType<typeof asPvescalerError>) => void) | undefined;
  /** About every second while a takeover waits. */
  readonly onHeartbeat?: (() => void) | undefined;
}

export class LeaderElection implements DriverLease {
  readonly #options: FleetOptions;
  readonly #cluster: Cluster;
  readonly #lost = new AbortController();
  readonly #over = new AbortController();
  readonly #maxRequestMs: number;
  readonly #ended: EndedDriver | undefined;
  #lease: ClusterLease | undefined;
  #isTakenOver = false;
  /** When requests of the former holder can no longer take effect. */
  #settledAt = Number.NEGATIVE_INFINITY;
  #keeping: Promise<unknown> = Promise.resolve();

  constructor(options: FleetOptions, cluster: Cluster, ended?: EndedDriver) {
    this.#options = options;
    this.#cluster = cluster;
    this.#ended = ended;
    this.#maxRequestMs = maxRequestMs(options);
  }

  get #durationMs(): number {
    return this.#maxRequestMs + START_WINDOW_MS;
  }

  /** Aborted when the Lease is lost, or so close to its end that no request may be started. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  mayAct(): boolean {
    return isBefore(this.until(), this.#options.clock);
  }

  /** A request started before then is over when the Lease ends. */
  until(): Deadline {
    const lease = this.#lease;
    if (lease === undefined || this.#lost.signal.aborted) return PAST;
    return {
      wall: lease.expiresAt - this.#maxRequestMs,
      monotonic: lease.actUntil - this.#maxRequestMs,
    };
  }

  /** Resolves when this process may act; false when it was cancelled. */
  async win(signal: AbortSignal, events: ElectionEvents): Promise<boolean> {
    const taken = await this.#acquire(signal, events);
    if (taken === undefined) return false;
    this.#lease = taken;
    this.#keeping = Promise.all([this.#renew(), this.#guard()]);
    const settlingMs = taken.unsettledMs ?? this.#maxRequestMs;
    this.#settledAt = this.#options.clock.monotonic() + settlingMs;
    if (!this.#isTakenOver && settlingMs === 0) return true;
    try {
      const waiting = AbortSignal.any([signal, this.#lost.signal]);
      await this.#settle(settlingMs, waiting, events);
      await this.#confirmReadable(waiting, events);
      return true;
    } catch (error) {
      if (error instanceof Cancelled) return false;
      throw error;
    }
  }

  /** Call it when no request can be started any more. */
  async resign(): Promise<void> {
    this.#over.abort();
    await this.#keeping;
    const lease = this.#lease;
    this.#lease = undefined;
    if (lease === undefined) return;
    const unsettledMs = this.#unsettledMs();
    await this.#cluster.releaseLease(lease, { unsettledMs }).catch(() => undefined);
  }

  /** Covers this process and its predecessor: a takeover that is cancelled while it waits passes the rest on. */
  #unsettledMs(): number {
    const { driverRegistry, clock } = this.#options;
    // Without a registry of requests, none can be known to be over.
    const own = driverRegistry?.unsettledMs(this.#maxRequestMs) ?? this.#maxRequestMs;
    return Math.max(own, this.#settledAt - clock.monotonic());
  }

  async #acquire(signal: AbortSignal, events: ElectionEvents): Promise<AcquiredLease | undefined> {
    const { clock, settings } = this.#options;
    const request = {
      name: RECONCILE_LEASE,
      holder: settings.holder,
      durationMs: this.#durationMs,
    };
    const waitingSince = clock.monotonic();
    let isReported = false;
    while (!signal.aborted) {
      try {
        return await this.#acquireOnce(request, signal);
      } catch (error) {
        const failure = asPvescalerError(error);
        if (failure instanceof Cancelled) return undefined;
        if (failure.class === 'Bug') throw failure;
        if (failure.code === 'LEASE_HELD') {
          this.#isTakenOver = true;
          const holder = String(failure.facts['holder']);
          events.onWaiting?.(holder);
          // A Lease that is not renewed is free by now: the holder renews it, without the lease in this store.
          if (!isReported && clock.monotonic() - waitingSince > this.#durationMs + RETRY_MS) {
            isReported = true;
            events.onSeparateStore?.(holder);
          }
        } else events.onError?.(failure);
        await clock.sleep(RETRY_MS, { signal }).catch(() => undefined);
      }
    }
    return undefined;
  }

  async #acquireOnce(request: ClusterLeaseRequest, signal: AbortSignal): Promise<AcquiredLease> {
    const ended = this.#ended;
    try {
      return await this.#cluster.acquireLease(request, { signal });
    } catch (error) {
      const { code, facts } = asPvescalerError(error);
      const isHeld = code === 'LEASE_HELD' && ended !== undefined;
      if (!isHeld || facts['holder'] !== ended.holder) throw error;
      this.#isTakenOver = true;
      const { holder } = ended;
      const unsettledMs = ended.unsettledMs(this.#maxRequestMs);
      return this.#cluster.acquireLease({ ...request, ended: { holder, unsettledMs } }, { signal });
    }
  }

  // oxlint-disable-next-line max-params -- duration, signal and events
  async #settle(ms: number, signal: AbortSignal, events: ElectionEvents): Promise<void> {
    const { clock } = this.#options;
    const until = clock.monotonic() + ms;
    for (let leftMs = ms; leftMs > 0; leftMs = until - clock.monotonic()) {
      await clock.sleep(Math.min(leftMs, RETRY_MS), { signal });
      events.onHeartbeat?.();
    }
  }

  /** Without a readable region there is nothing to act on; the reason is reported once. */
  async #confirmReadable(
    signal: AbortSignal,
    { onHeartbeat, onError }: ElectionEvents,
  ): Promise<void> {
    const { clock, hypervisors } = this.#options;
    let isReported = false;
    const readings = new Map<string, RegionReading>();
    for (let reads = 0; reads < REQUIRED_READS; ) {
      if (reads > 0 || isReported) await clock.sleep(BETWEEN_READS_MS, { signal });
      const { views, stale } = await recentRegionViews(this.#options, { signal }, readings);
      onHeartbeat?.();
      if (views.size > 0 || hypervisors.size === 0) {
        reads += 1;
      } else if (!isReported) {
        isReported = true;
        const why = Object.values(stale).join('; ');
        onError?.(
          new Unreachable(
            'PVE_UNREACHABLE',
            `the takeover waits until a region can be read: ${why}`,
          ),
        );
      }
    }
  }

  async #renew(): Promise<void> {
    const end = await keepRenewing({
      clock: this.#options.clock,
      intervalMs: RENEW_MS,
      signal: AbortSignal.any([this.#over.signal, this.#lost.signal]),
      renew: async () => {
        if (this.#lease === undefined) return;
        this.#lease = await this.#cluster.renewLease(this.#lease, this.#durationMs, {
          signal: AbortSignal.any([this.#over.signal, this.#lost.signal]),
        });
      },
      isLost: (error) => error instanceof LostLeadership,
    });
    if (end === 'lost') this.#lost.abort();
  }

  /** Ends the term in time even if a renewal hangs. */
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
