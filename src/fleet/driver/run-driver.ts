// SPDX-License-Identifier: Apache-2.0
// Being the driver: acquire the lease, keep it, run passes and the work queue, and stop at the instant it is lost.
import {
  isLeaseValid,
  type Lease,
  RECONCILE_LEASE,
  RECONCILE_LEASE_MS,
  RECONCILE_RENEW_MS,
} from '../../model/lease.ts';
import type { EndedDriver } from '../../ports/driver-lock.ts';
import {
  asPvescalerError,
  Cancelled,
  LostLeadership,
  PvescalerError,
  TimedOut,
} from '../../ports/errors.ts';
import { type Deadline, type DriverLease, isBefore, NEVER, PAST } from '../context/driver-lease.ts';
import { DriverState } from '../context/driver-state.ts';
import { DriverTime } from '../context/driver-time.ts';
import type { FleetSettings } from '../context/settings.ts';
import type { CallsInProgress } from './calls-in-progress.ts';
import { keepRenewing } from './keep-renewing.ts';
import { LeaderElection, maxRequestMs } from './leader-election.ts';
import type { MinimumDelay } from './minimum-delay.ts';
import type { EngineOptions, PassReport } from './reconcile-pass.ts';
import { Reconciler } from './reconciler.ts';

export interface DriverEvents {
  /** Before and after each pass of this process, however it ends. */
  readonly onPassBegin?: () => void;
  readonly onPassEnd?: (outcome: PassOutcome) => void;
  /** After each pass of this process that succeeded. */
  readonly onPass?: (report: PassReport) => void;
  /** While another process is the driver. */
  readonly onWaiting?: (holder: string) => void;
  /** `holder` drives the cluster's machines with another store: what one requests, the other does not see. */
  readonly onSeparateStore?: (holder: string) => void;
  /** An error that concerns no single machine; the driver retries. */
  readonly onError?: (error: PvescalerError) => void;
  /** This process becomes the driver, or stops being it. */
  readonly onLeading?: (isLeading: boolean) => void;
  /** About every second between passes: a long silence means that the driver hangs. */
  readonly onHeartbeat?: () => void;
}

/** 'incomplete': a region could not be read. 'cancelled': the lease was lost, or the process stops. */
export type PassOutcome = 'success' | 'incomplete' | 'error' | 'cancelled';

interface DriverParts extends EngineOptions {
  readonly calls: CallsInProgress;
}

export interface DriverOptions {
  /** Cancels everything at once; calls in progress are aborted. */
  readonly signal: AbortSignal;
  /** Starts nothing new; the pass and the machines being reconciled are finished. */
  readonly finish?: AbortSignal | undefined;
  readonly events?: DriverEvents | undefined;
  /** While it lasts, no machines are requested for the minimum of a pool. */
  readonly minimumDelay?: MinimumDelay | undefined;
}

/** How soon a request of another process is noticed. */
const IDLE_POLL_MS = 1_000;
const AFTER_ERROR_MS = 1_000;
/** A pass waits for no call: one that lasts for this long will never end. */
const MAX_PASS_MS = 120_000;
/** Longer than the deadline of any call; an upload has ten minutes. */
const MAX_CALL_MS = 15 * 60_000;
/** Passes may follow each other more closely than reads of the regions. */
const MAX_SHARED_VIEW_AGE_MS = 2_000;

/** Until the signal: this process is the driver whenever the lease is free. */
export async function runDriver(options: DriverParts, given: DriverOptions): Promise<void> {
  const { signal, finish, events = {} } = given;
  const ending = finish === undefined ? signal : AbortSignal.any([signal, finish]);
  const missingTime = new DriverTime(Number.POSITIVE_INFINITY);
  const driver = { signal, ending, events, missingTime };
  while (!ending.aborted) {
    const acquired = await acquire(options, driver);
    if (acquired === undefined) {
      options.driverRegistry?.lock?.unlock();
      return;
    }
    await new DriverTerm(options, acquired, driver).run();
  }
}

interface RunOptions {
  readonly signal: AbortSignal;
  /** Aborted by `signal` or `finish`. */
  readonly ending: AbortSignal;
  readonly events: DriverEvents;
  /** See `DriverState`. */
  readonly missingTime: DriverTime;
}

/** Undefined for the first lease, and for one that an earlier version released. */
function endOf(lease: Lease | undefined): number | undefined {
  if (lease?.releasedAt !== undefined) return lease.releasedAt;
  return lease === undefined || lease.expiresAt === 0 ? undefined : lease.expiresAt;
}

interface AcquiredLease {
  readonly lease: Lease;
  /** On the monotonic clock. */
  readonly heldUntil: number;
  /** When the lease before this one ended; undefined for the first. */
  readonly previousEndedAt: number | undefined;
  /** The driver before, if it is known to have ended. */
  readonly ended: EndedDriver | undefined;
}

async function acquire(
  options: DriverParts,
  { ending, events }: RunOptions,
): Promise<AcquiredLease | undefined> {
  const { clock } = options;
  while (!ending.aborted) {
    try {
      return await acquireOnce(options, ending);
    } catch (error) {
      const failure = asPvescalerError(error);
      if (failure instanceof Cancelled) return undefined;
      if (failure.retry !== 'backoff') throw error;
      if (failure.code === 'LEASE_HELD') events.onWaiting?.(String(failure.facts['holder']));
      else events.onError?.(failure);
      events.onHeartbeat?.();
      await clock.sleep(IDLE_POLL_MS, { signal: ending }).catch(() => undefined);
    }
  }
  return undefined;
}

async function acquireOnce(options: DriverParts, signal: AbortSignal): Promise<AcquiredLease> {
  const { store, clock, driverRegistry } = options;
  const settings = options.settings();
  const { holder } = settings;
  const previous = await store.leases.read(RECONCILE_LEASE, { signal });
  const ended = findEnded(options, previous);
  const heldUntil = clock.monotonic() + RECONCILE_LEASE_MS;
  const isSettled = ended?.unsettledMs(maxRequestMs({ settings })) === 0;
  const request = {
    name: RECONCILE_LEASE,
    holder,
    durationMs: RECONCILE_LEASE_MS,
    endedHolder: isSettled ? ended.holder : undefined,
  };
  const lease = await store.leases.acquire(request, { signal });
  driverRegistry?.claimLock(holder);
  return { lease, heldUntil, previousEndedAt: endOf(previous), ended };
}

/** Keeps the lock only if this process may become the driver: one without the lock takes it with its next renewal. */
function findEnded(
  { driverRegistry, clock }: DriverParts,
  lease: Lease | undefined,
): EndedDriver | undefined {
  const lock = driverRegistry?.lock;
  if (lock?.tryLock() !== true) return undefined;
  const ended = lock.endedDriver();
  const isHeld = lease !== undefined && isLeaseValid(lease, clock.now());
  if (isHeld && lease.holder !== ended?.holder) lock.unlock();
  return ended;
}

function isEnd(error: unknown, signal: AbortSignal): boolean {
  return error instanceof LostLeadership || (error instanceof Cancelled && signal.aborted);
}

/** From acquiring the lease to its release or loss. */
class DriverTerm implements DriverLease {
  readonly #options: DriverParts;
  readonly #run: RunOptions;
  readonly #reconciler: Reconciler;
  readonly #lost = new AbortController();
  readonly #over = new AbortController();
  /** Aborted when passes end, or by an error in a worker that ends the term. */
  readonly #ended = new AbortController();
  readonly #election: LeaderElection | undefined;
  #lease: Lease;
  /** On the monotonic clock: a wall clock that is set back must not prolong the lease. */
  #heldUntil: number;
  /** On the monotonic clock, while a pass runs. */
  #passStartedAt: number | undefined;
  #failure: unknown;
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(
    options: DriverParts,
    { lease, heldUntil, previousEndedAt, ended }: AcquiredLease,
    run: RunOptions,
  ) {
    this.#options = options;
    this.#lease = lease;
    this.#heldUntil = heldUntil;
    this.#run = run;
    this.#reconciler = new Reconciler(options, {
      onError: (error) => this.#onMachineError(error),
      state: new DriverState(previousEndedAt, run.missingTime),
    });
    const { cluster } = options;
    this.#election =
      cluster === undefined
        ? undefined
        : new LeaderElection({ ...options, settings: options.settings() }, cluster, ended);
  }

  get lease(): Lease {
    return this.#lease;
  }

  mayAct(): boolean {
    return isBefore(this.until(), this.#options.clock);
  }

  until(): Deadline {
    if (this.#lost.signal.aborted) return PAST;
    const { wall, monotonic } = this.#election?.until() ?? NEVER;
    return {
      wall: Math.min(wall, this.#lease.expiresAt),
      monotonic: Math.min(monotonic, this.#heldUntil),
    };
  }

  async run(): Promise<void> {
    const { events } = this.#run;
    const renewing = this.#renew();
    try {
      if (!(await this.#isElected()) || !(await this.#synchronize())) return;
      this.#options.driverRegistry?.begin(this);
      this.#options.forecast.beginTerm(this);
      events.onLeading?.(true);
      await this.#reconcileUnlessStalled();
    } finally {
      await this.#end(renewing);
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Gives up all leases. What was deferred is stored while this process still leads. */
  async #end(renewing: Promise<void>): Promise<void> {
    const { store, driverRegistry, forecast } = this.#options;
    if (this.mayAct()) await store.flush?.(this.#lease);
    driverRegistry?.end(this);
    forecast.endTerm(this);
    this.#run.events.onLeading?.(false);
    await this.#election?.resign();
    this.#over.abort();
    await renewing;
    // Nothing is sent any more: a process that finds the lock free may take over at once.
    driverRegistry?.lock?.unlock();
    await store.leases.release(this.#lease).catch(() => undefined);
  }

  async #isElected(): Promise<boolean> {
    const { ending, events } = this.#run;
    if (this.#election === undefined) return true;
    const signal = AbortSignal.any([ending, this.#lost.signal]);
    return this.#election.win(signal, {
      onHeartbeat: () => events.onHeartbeat?.(),
      onSeparateStore: (holder) => events.onSeparateStore?.(holder),
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

  /** What the driver before has written is in the records before the first pass; false when the term is over. */
  async #synchronize(): Promise<boolean> {
    const { store, clock } = this.#options;
    const { ending, events } = this.#run;
    const lost = this.#election === undefined ? [] : [this.#election.lost];
    const signal = AbortSignal.any([ending, this.#lost.signal, ...lost]);
    while (!signal.aborted) {
      try {
        await store.synchronize({ signal });
        return true;
      } catch (error) {
        const failure = asPvescalerError(error);
        if (failure instanceof Cancelled) return false;
        if (failure.retry !== 'backoff') throw error;
        events.onError?.(failure);
        events.onHeartbeat?.();
        await clock.sleep(AFTER_ERROR_MS, { signal }).catch(() => undefined);
      }
    }
    return false;
  }

  /** A lease that cannot be renewed is lost when it expires, whatever the reason. */
  async #renew(): Promise<void> {
    const { store, clock } = this.#options;
    const end = await keepRenewing({
      clock,
      intervalMs: RECONCILE_RENEW_MS,
      signal: this.#over.signal,
      renew: async () => {
        const heldUntil = clock.monotonic() + RECONCILE_LEASE_MS;
        this.#lease = await store.leases.renew(this.#lease, RECONCILE_LEASE_MS);
        this.#heldUntil = heldUntil;
        this.#options.driverRegistry?.claimLock(this.#lease.holder);
      },
      isLost: (error) => error instanceof LostLeadership || clock.now() >= this.#lease.expiresAt,
    });
    if (end === 'lost') this.#lost.abort();
  }

  /** A driver that makes no progress gives up its lease, so that another process can take over. */
  async #reconcileUnlessStalled(): Promise<void> {
    const stop = new AbortController();
    const stalled = this.#waitForStall(stop.signal);
    try {
      await Promise.race([this.#reconcile(), stalled]);
    } finally {
      stop.abort();
    }
  }

  /** Resolves when a call or a pass will never end, or at the signal. */
  async #waitForStall(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    for (;;) {
      await clock.sleep(IDLE_POLL_MS, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      const what = this.#stalledWork();
      if (what === undefined) continue;
      this.#failure = new TimedOut(
        'DRIVER_STALLED',
        `the driver makes no progress: ${what}; it gives up its lease`,
      );
      // What still waits for the call must change nothing when it continues.
      this.#lost.abort();
      return;
    }
  }

  #stalledWork(): string | undefined {
    const { calls, clock } = this.#options;
    const seconds = (ms: number) => `${Math.round(ms / 1_000)} s`;
    const oldest = calls.oldest();
    if (oldest !== undefined && oldest.ms > MAX_CALL_MS)
      return `the call ${oldest.name} has not ended for ${seconds(oldest.ms)}`;
    const passMs = clock.monotonic() - (this.#passStartedAt ?? clock.monotonic());
    return passMs > MAX_PASS_MS ? `a reconcile pass has run for ${seconds(passMs)}` : undefined;
  }

  async #reconcile(): Promise<void> {
    const { signal, ending } = this.#run;
    const lost = [
      this.#lost.signal,
      ...(this.#election === undefined ? [] : [this.#election.lost]),
    ];
    const acting = AbortSignal.any([signal, ...lost]);
    const going = AbortSignal.any([ending, this.#ended.signal, ...lost]);
    const working = this.#runQueue(going);
    try {
      await this.#runPasses(acting, going);
    } finally {
      this.#ended.abort();
      await working;
    }
  }

  /** Starts machines when they are due; at the end waits for those in progress. */
  async #runQueue(going: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const { queue } = this.#reconciler;
    while (!going.aborted) {
      queue.changed.reset();
      queue.startDue();
      const waitMs = Math.min(Math.ceil(queue.nextDueAt() - clock.monotonic()), IDLE_POLL_MS);
      const signal = AbortSignal.any([going, queue.changed.signal]);
      await clock.sleep(waitMs, { signal }).catch(() => undefined);
    }
    await queue.idle();
  }

  async #runPasses(acting: AbortSignal, going: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!going.aborted) {
      const settings = this.#options.settings();
      const report = await this.#pass(acting);
      if (report === 'lost') return;
      if (report !== undefined) this.#run.events.onPass?.(report);
      const pauseMs = report === undefined ? AFTER_ERROR_MS : report.nextPassAt - clock.now();
      await this.#pause(pauseMs, going, settings);
    }
  }

  /** Undefined when the pass failed and is to be retried. */
  async #pass(signal: AbortSignal): Promise<PassReport | 'lost' | undefined> {
    const { events } = this.#run;
    const authority = {
      lease: this.#lease,
      mayAct: () => this.mayAct(),
      signal,
      viewAgeMs: MAX_SHARED_VIEW_AGE_MS,
    };
    this.#passStartedAt = this.#options.clock.monotonic();
    events.onPassBegin?.();
    let outcome: PassOutcome = 'error';
    try {
      const report = await this.#reconciler.pass(authority);
      outcome = Object.keys(report.stale).length === 0 ? 'success' : 'incomplete';
      return report;
    } catch (error) {
      if (isEnd(error, signal)) {
        outcome = 'cancelled';
        return error instanceof LostLeadership ? 'lost' : undefined;
      }
      if (!(error instanceof PvescalerError) || error.class === 'Bug') throw error;
      events.onError?.(error);
      return undefined;
    } finally {
      this.#passStartedAt = undefined;
      events.onPassEnd?.(outcome);
    }
  }

  /** What a machine's reconcile could not handle itself: the lease is lost, or the store cannot be used. */
  #onMachineError(error: unknown): void {
    if (error instanceof Cancelled) return;
    if (error instanceof LostLeadership) this.#lost.abort();
    else if (error instanceof PvescalerError && error.class !== 'Bug') this.#report(error);
    else {
      this.#failure ??= error;
      this.#ended.abort();
    }
  }

  /** Once a second: an unusable store is the same error for every machine. */
  #report(error: PvescalerError): void {
    const now = this.#options.clock.monotonic();
    if (now - this.#reportedAt < AFTER_ERROR_MS) return;
    this.#reportedAt = now;
    this.#run.events.onError?.(error);
  }

  /** Ends early when another process has requested something, or the settings are not those of the last pass. */
  async #pause(ms: number, signal: AbortSignal, settings: FleetSettings): Promise<void> {
    const { clock } = this.#options;
    const until = clock.monotonic() + ms;
    while (!signal.aborted && clock.monotonic() < until && this.#options.settings() === settings) {
      const napMs = Math.min(IDLE_POLL_MS, until - clock.monotonic());
      await clock.sleep(napMs, { signal }).catch(() => undefined);
      this.#run.events.onHeartbeat?.();
      if (!signal.aborted && (await this.#hasOpenIntents())) return;
    }
  }

  /** False also while the store is busy: then the pause is not cut short. */
  async #hasOpenIntents(): Promise<boolean> {
    const { cache } = this.#options;
    try {
      await cache.refresh();
    } catch (error) {
      if (error instanceof PvescalerError && error.retry === 'backoff') return false;
      throw error;
    }
    return cache.index.hasOpenIntents;
  }
}
