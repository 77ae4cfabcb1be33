// SPDX-License-Identifier: Apache-2.0
// Being the driver: take the lease, keep it, run rounds, stop acting at the instant it is lost.
import {
  type Lease,
  RECONCILE_LEASE,
  RECONCILE_LEASE_MS,
  RECONCILE_RENEW_MS,
} from '../../model/lease.ts';
import { asPvescalerError, Cancelled, LostLeadership, PvescalerError } from '../../ports/errors.ts';
import { type Deadline, type DriverLease, isBefore, NEVER, PAST } from '../context/driver-lease.ts';
import { DriverState } from '../context/driver-state.ts';
import type { EngineOptions } from '../context/options.ts';
import { type Interval, nextStepAt, runStep } from './interval.ts';
import { LeaderElection } from './leader-election.ts';
import { type Pass, type PassReport, runFullPass } from './reconcile-pass.ts';

export interface DriverEvents {
  /** Before and after each round and step of this process, however it ends. Who stops it in between leaves things half done. */
  readonly onPassBegin?: () => void;
  readonly onPassEnd?: () => void;
  /** After each round of this process that was no trouble. */
  readonly onPass?: (report: PassReport) => void;
  /** While another process drives; it does the work. */
  readonly onWaiting?: (holder: string) => void;
  /** A round ended in trouble that is no machine's; the next one tries again. */
  readonly onError?: (error: PvescalerError) => void;
  /** This process begins to drive, or has stopped. */
  readonly onLeading?: (isLeading: boolean) => void;
  /** Every second or so outside of rounds: whoever hears nothing for long knows that something hangs. */
  readonly onHeartbeat?: () => void;
}

export interface DriverOptions {
  /** Ends everything at once; what was begun is left half done. */
  readonly signal: AbortSignal;
  /** No new round is begun; the present one is finished. */
  readonly finish?: AbortSignal | undefined;
  readonly events?: DriverEvents | undefined;
}

/** How soon a new intent is noticed while nothing is. */
const IDLE_POLL_MS = 1_000;
const AFTER_ERROR_MS = 1_000;
/** Rounds may be that much closer than views. */
const MAX_SHARED_VIEW_AGE_MS = 2_000;

/** So that machines which move one after the other move together. */
const SHORTEST_STEP_MS = 100;

/** Until the signal: whenever the lease is free, this process drives. */
export async function runDriver(options: EngineOptions, given: DriverOptions): Promise<void> {
  const { signal, finish, events = {} } = given;
  const ending = finish === undefined ? signal : AbortSignal.any([signal, finish]);
  const terms = { signal, ending, events };
  while (!ending.aborted) {
    const lease = await acquire(options, terms);
    if (lease === undefined) return;
    await new DriverTerm(options, lease, terms).run();
  }
}

interface Terms {
  readonly signal: AbortSignal;
  /** Either way of ending. */
  readonly ending: AbortSignal;
  readonly events: DriverEvents;
}

async function acquire(
  { store, clock, settings }: EngineOptions,
  { ending, events }: Terms,
): Promise<Lease | undefined> {
  const request = {
    name: RECONCILE_LEASE,
    holder: settings.holder,
    durationMs: RECONCILE_LEASE_MS,
  };
  while (!ending.aborted) {
    try {
      return await store.leases.acquire(request, { signal: ending });
    } catch (error) {
      const ours = asPvescalerError(error);
      if (ours instanceof Cancelled) return undefined;
      if (ours.retry !== 'backoff') throw error;
      if (ours.code === 'LEASE_HELD') events.onWaiting?.(String(ours.facts['holder']));
      else events.onError?.(ours);
      events.onHeartbeat?.();
      await clock.sleep(IDLE_POLL_MS, { signal: ending }).catch(() => undefined);
    }
  }
  return undefined;
}

interface Signals {
  /** Ends what is being done. */
  readonly acting: AbortSignal;
  /** Ends before something new is begun. */
  readonly going: AbortSignal;
}

class DriverTerm implements DriverLease {
  readonly #options: EngineOptions;
  readonly #terms: Terms;
  readonly #memory = new DriverState();
  readonly #lost = new AbortController();
  readonly #over = new AbortController();
  readonly #election: LeaderElection | undefined;
  #lease: Lease;

  constructor(options: EngineOptions, lease: Lease, terms: Terms) {
    this.#options = options;
    this.#lease = lease;
    this.#terms = terms;
    const { cluster } = options;
    this.#election = cluster === undefined ? undefined : new LeaderElection(options, cluster);
  }

  mayAct(): boolean {
    return isBefore(this.until(), this.#options.clock);
  }

  until(): Deadline {
    if (this.#lost.signal.aborted) return PAST;
    const { wall, monotonic } = this.#election?.until() ?? NEVER;
    return { wall: Math.min(wall, this.#lease.expiresAt), monotonic };
  }

  async run(): Promise<void> {
    const { events } = this.#terms;
    const renewing = this.#renew();
    try {
      if (!(await this.#isElected())) return;
      this.#options.driverRegistry?.begin(this);
      this.#options.forecast.beginTerm(this);
      events.onLeading?.(true);
      await this.#rounds();
    } finally {
      this.#options.driverRegistry?.end(this);
      this.#options.forecast.endTerm(this);
      events.onLeading?.(false);
      await this.#election?.resign();
      this.#over.abort();
      await renewing;
      await this.#options.store.leases.release(this.#lease).catch(() => undefined);
    }
  }

  async #isElected(): Promise<boolean> {
    const { ending, events } = this.#terms;
    if (this.#election === undefined) return true;
    const signal = AbortSignal.any([ending, this.#lost.signal]);
    return this.#election.win(signal, {
      onHeartbeat: () => events.onHeartbeat?.(),
      onWaiting: (holder) => {
        events.onWaiting?.(holder);
        events.onHeartbeat?.();
      },
      onError: (error) => {
        events.onError?.(error);
        events.onHeartbeat?.();
      },
    });
  }

  /** A lease that cannot be renewed is lost when it expires, whatever the reason. */
  async #renew(): Promise<void> {
    const { store, clock } = this.#options;
    const { signal } = this.#over;
    while (!signal.aborted) {
      await clock.sleep(RECONCILE_RENEW_MS, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      try {
        this.#lease = await store.leases.renew(this.#lease, RECONCILE_LEASE_MS);
      } catch (error) {
        if (error instanceof LostLeadership || clock.now() >= this.#lease.expiresAt) {
          this.#lost.abort();
          return;
        }
      }
    }
  }

  async #rounds(): Promise<void> {
    const { signal, ending, events } = this.#terms;
    const { clock, settings } = this.#options;
    const lost = [
      this.#lost.signal,
      ...(this.#election === undefined ? [] : [this.#election.lost]),
    ];
    const acting = AbortSignal.any([signal, ...lost]);
    const going = AbortSignal.any([ending, ...lost]);
    while (!going.aborted) {
      const revision = await this.#revision();
      const round = await this.#round(acting);
      if (round === 'lost') return;
      if (round !== undefined) events.onPass?.(round.report);
      const pauseMs = round === undefined ? AFTER_ERROR_MS : round.report.nextPassAt - clock.now();
      const isMoving = round !== undefined && pauseMs <= settings.busyMs;
      if (!isMoving) await this.#pause(pauseMs, { revision, signal: going });
      else if ((await this.#steps(round.stage, pauseMs, { acting, going })) === 'lost') return;
    }
  }

  /** Until the next round is due, or nothing moves any more: what ends in between goes on at once. */
  async #steps(
    first: Interval,
    ms: number,
    { acting, going }: Signals,
  ): Promise<'lost' | undefined> {
    const { clock } = this.#options;
    const { wakeSignal } = this.#memory;
    const until = clock.monotonic() + ms;
    const leftMs = () => until - clock.monotonic();
    let stage: Interval | undefined = first;
    while (stage !== undefined && !going.aborted && leftMs() > 0) {
      await this.#nap(Math.min(SHORTEST_STEP_MS, leftMs()), going);
      const stepMs = nextStepAt(stage) - clock.now();
      await this.#nap(Math.min(stepMs, leftMs()), AbortSignal.any([going, wakeSignal.signal]));
      wakeSignal.reset();
      if (going.aborted || leftMs() <= 0) continue;
      const here: Interval = stage;
      const next: Interval | 'lost' | undefined = await this.#attempt(acting, () => runStep(here));
      if (next === 'lost') return 'lost';
      stage = next;
    }
    return undefined;
  }

  async #nap(ms: number, signal: AbortSignal): Promise<void> {
    await this.#options.clock.sleep(ms, { signal }).catch(() => undefined);
    this.#terms.events.onHeartbeat?.();
  }

  /** Undefined while the store is busy: then the pause is not cut short. */
  #revision(): Promise<number | undefined> {
    return this.#options.store.revision().catch((error: unknown) => {
      if (error instanceof PvescalerError && error.retry === 'backoff') return undefined;
      throw error;
    });
  }

  #round(signal: AbortSignal): Promise<Pass | 'lost' | undefined> {
    const authority = {
      lease: this.#lease,
      mayAct: () => this.mayAct(),
      signal,
      viewAgeMs: MAX_SHARED_VIEW_AGE_MS,
    };
    return this.#attempt(signal, () => runFullPass(this.#options, authority, this.#memory));
  }

  /** Undefined when it ended in trouble. */
  async #attempt<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T | 'lost' | undefined> {
    const { events } = this.#terms;
    events.onPassBegin?.();
    try {
      return await work();
    } catch (error) {
      if (error instanceof LostLeadership) return 'lost';
      if (error instanceof Cancelled && signal.aborted) return undefined;
      if (!(error instanceof PvescalerError) || error.class === 'Bug') throw error;
      events.onError?.(error);
      return undefined;
    } finally {
      events.onPassEnd?.();
    }
  }

  /** Ends early when somebody wrote something. */
  async #pause(
    ms: number,
    { revision, signal }: { readonly revision: number | undefined; readonly signal: AbortSignal },
  ): Promise<void> {
    const { clock } = this.#options;
    const until = clock.monotonic() + ms;
    while (!signal.aborted && clock.monotonic() < until) {
      const napMs = Math.min(IDLE_POLL_MS, until - clock.monotonic());
      await this.#nap(napMs, signal);
      if (signal.aborted || revision === undefined) continue;
      if ((await this.#revision()) !== revision) return;
    }
  }
}
