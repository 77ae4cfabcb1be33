// SPDX-License-Identifier: Apache-2.0
// The loop of mode standalone: wait for a change, observe, decide, request, record. Only the driver of the fleet decides:
// its lease fences the requests, so that two processes never request for the same pods.
import type { PoolConfig } from '../config/types/index.ts';
import type { CheckDrain, Fleet } from '../fleet/index.ts';
import { AUTOSCALER } from '../model/intent.ts';
import type { Lease } from '../model/lease.ts';
import { podKey } from '../model/pod.ts';
import type { Clock } from '../ports/clock.ts';
import type { Cluster } from '../ports/cluster.ts';
import { asPvescalerError, Cancelled, LostLeadership } from '../ports/errors.ts';
import type { Journal } from '../ports/journal.ts';
import type { Log } from '../ports/log.ts';
import type { Meters } from '../ports/meters.ts';
import type { Random } from '../ports/random.ts';
import {
  type CreateStep,
  type Decision,
  decide,
  EMPTY_MEMORY,
  type Plan,
  rememberRequested,
  type ScalingInput,
  type ScalingMemory,
  type ScalingSettings,
  type Step,
} from '../scaling/index.ts';
import { type AutoscalerStatus, NOTHING_DECIDED, nextStatus } from './autoscaler-status.ts';
import { drainCheck } from './drain-check.ts';
import { DurableMemory } from './durable-memory.ts';
import { ClusterObserver, type Observed } from './observation.ts';
import { PlanRecorder, type Uids } from './plan-recorder.ts';
import { regionStaleness } from './region-staleness.ts';
import { scalingInput } from './scaling-input.ts';
import { Stabilization } from './stabilization.ts';

/** What may change while the autoscaler runs. */
export interface AutoscalerSettings {
  readonly pools: readonly PoolConfig[];
  readonly settings: ScalingSettings;
  /** Interval between two decisions without a change. */
  readonly scanMs: number;
}

export interface AutoscalerOptions extends AutoscalerSettings {
  readonly fleet: Fleet;
  readonly cluster: Cluster;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly meters: Meters;
  /** Namespace of Events that are about neither a pod nor a Node. */
  readonly namespace: string;
}

interface ActOptions {
  readonly lease: Lease;
  readonly signal: AbortSignal | undefined;
}

/** Changes within this time are observed together. */
const COALESCE_MS = 100;
const AFTER_ERROR_MS = 5_000;
/** How soon a process that cannot decide tries again: another one drives, or nothing has been read yet. */
const IDLE_MS = 1_000;

export class Autoscaler {
  readonly #options: Omit<AutoscalerOptions, keyof AutoscalerSettings>;
  /** Of the decision in progress, or of the last one. */
  #current: AutoscalerSettings;
  #next: AutoscalerSettings | undefined;
  /** Aborted when new settings are there: ends the wait for the next decision. */
  #replaced = new AbortController();
  readonly #observer: ClusterObserver;
  readonly #recorder: PlanRecorder;
  readonly #stabilization: Stabilization;
  /** The token of the lease under which the memory was collected. */
  #token: number | undefined;
  readonly #durable: DurableMemory;
  #memory: ScalingMemory = EMPTY_MEMORY;
  /** Wall clock. */
  #decidedAt = Number.NEGATIVE_INFINITY;
  #nextAt: number | undefined;
  #waitingFor = 'the first view of the cluster';
  #status: AutoscalerStatus = NOTHING_DECIDED;

  constructor(options: AutoscalerOptions) {
    this.#options = options;
    this.#current = options;
    this.#observer = new ClusterObserver(options);
    this.#durable = new DurableMemory(options);
    this.#recorder = new PlanRecorder(options);
    this.#stabilization = new Stabilization(shortestWindowMs(options));
  }

  /** The decision in progress ends with the settings that it began with; the next one is made at once. */
  replaceSettings(settings: AutoscalerSettings): void {
    this.#next = settings;
    this.#replaced.abort();
  }

  #takeSettings(): void {
    if (this.#next === undefined) return;
    this.#current = this.#next;
    this.#next = undefined;
    this.#replaced = new AbortController();
    this.#stabilization.windowMs = shortestWindowMs(this.#current);
    this.#decidedAt = Number.NEGATIVE_INFINITY;
  }

  /** As of the last decision of this process. */
  get status(): AutoscalerStatus {
    return this.#status;
  }

  /** Empty once the cluster has been observed. */
  waitingFor(): readonly string[] {
    return this.#waitingFor === '' ? [] : [this.#waitingFor];
  }

  /** For drains that this autoscaler requested. */
  get checkDrain(): CheckDrain {
    return drainCheck({
      observer: this.#observer,
      settings: () => {
        const { pools, settings } = this.#current;
        return { pools, expendablePriority: settings.expendablePriority };
      },
      drainingNodes: () => this.#drainingNodes(),
    });
  }

  /** Until the signal. An error of one decision is logged, and the next one is made later. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    while (!signal.aborted) {
      try {
        await this.runOnce(signal);
        await this.#waitForNext(signal);
      } catch (cause) {
        const error = asPvescalerError(cause);
        if (error instanceof Cancelled && signal.aborted) return;
        log.warn('the autoscaler could not decide; it tries again', { error });
        this.#options.meters.add('pvescaler_autoscaler_decisions_total', { outcome: 'error' });
        await clock.sleep(AFTER_ERROR_MS, { signal }).catch(() => undefined);
      }
    }
  }

  /** Observes, and decides if it is time to. Returns the plan that was carried out. */
  async runOnce(signal?: AbortSignal): Promise<Plan | undefined> {
    const { fleet, clock } = this.#options;
    this.#takeSettings();
    await fleet.view.refresh();
    const observation = await this.#observer.update();
    if (!observation.isFresh) {
      this.#waitingFor = `a fresh view of the cluster: ${observation.reason}`;
      if (fleet.driverLease() !== undefined) await this.#recorder.recordStale(observation.reason);
      return undefined;
    }
    this.#waitingFor = '';
    this.#recorder.clearStale();
    const now = clock.now();
    this.#stabilization.observe(observation.observed.pending, now);
    const lease = fleet.driverLease();
    if (lease === undefined) return undefined;
    this.#beginTerm(lease);
    if (!this.#isDue(now)) return undefined;
    return this.#decideAndAct(observation.observed, { lease, signal });
  }

  /** What this process remembers may be outdated: another one may have driven since. */
  #beginTerm({ token }: Lease): void {
    if (this.#token === token) return;
    this.#token = token;
    this.#memory = this.#durable.restore();
    this.#decidedAt = Number.NEGATIVE_INFINITY;
  }

  #isDue(now: number): boolean {
    const { dueAt } = this.#stabilization;
    // New pods are decided about together.
    if (dueAt !== undefined) return now >= dueAt;
    if (this.#nextAt !== undefined && now >= this.#nextAt) return true;
    return now - this.#decidedAt >= this.#current.scanMs || now < this.#decidedAt;
  }

  async #decideAndAct(
    observed: Observed,
    { lease, signal }: ActOptions,
  ): Promise<Plan | undefined> {
    const { clock, meters } = this.#options;
    // Machines may exist that have no record yet.
    if (!this.#isAnyRegionFresh()) return undefined;
    const startedAt = clock.monotonic();
    const { plan, memory, pauses } = decide(this.#input(observed));
    const seconds = (clock.monotonic() - startedAt) / 1_000;
    meters.observe('pvescaler_autoscaler_decision_duration_seconds', {}, seconds);
    this.#memory = memory;
    this.#decidedAt = clock.now();
    this.#nextAt = (plan.nextAt ?? 0) > this.#decidedAt ? plan.nextAt : undefined;
    this.#stabilization.markDecided();
    this.#recorder.setGauges(plan);
    this.#status = nextStatus(this.#status, plan, observed);
    await this.#pausePools(pauses);
    const uids = uidsOf(observed);
    await this.#act(plan, { lease, signal, uids });
    await this.#durable.save(this.#memory, this.#current.pools);
    await this.#recorder.recordRefusals(plan, uids);
    const outcome = plan.steps.length === 0 ? 'no-change' : 'change';
    meters.add('pvescaler_autoscaler_decisions_total', { outcome });
    return plan;
  }

  #isAnyRegionFresh(): boolean {
    const { fleet, clock } = this.#options;
    const staleReason = regionStaleness(fleet.forecast, clock.now());
    const regions = fleet.capacity()?.regions ?? [];
    return regions.some(({ region }) => staleReason(region) === undefined);
  }

  #input(observed: Observed): ScalingInput {
    const { fleet, clock, random } = this.#options;
    const { pools, settings } = this.#current;
    const now = clock.now();
    return scalingInput({
      observed,
      pools,
      view: fleet.view,
      capacity: fleet.capacity(),
      staleReason: regionStaleness(fleet.forecast, now),
      settings,
      memory: this.#memory,
      now,
      seed: random.integer(2 ** 31),
    });
  }

  async #act(
    plan: Plan,
    { lease, signal, uids }: ActOptions & { readonly uids: Uids },
  ): Promise<void> {
    for (const step of plan.steps) {
      try {
        await this.#carryOut(step, { fence: lease, signal });
      } catch (cause) {
        const error = asPvescalerError(cause);
        if (error instanceof LostLeadership || error instanceof Cancelled) throw error;
        await this.#recorder.recordFailedStep(step, plan, error.message);
        continue;
      }
      await this.#recorder.recordStep(step, plan, uids);
    }
  }

  async #carryOut(
    step: Step,
    request: { readonly fence: Lease; readonly signal: AbortSignal | undefined },
  ): Promise<void> {
    const { fleet } = this.#options;
    const why = { by: AUTOSCALER, reason: step.reason, ...request };
    switch (step.kind) {
      case 'create':
        return this.#create(step, why);
      case 'drain':
        await fleet.drain({ ...why, machines: [{ id: step.machine, reason: step.reason }] });
        return;
      case 'cancel':
        await fleet.cancelMachines([step.machine], why);
        return;
    }
  }

  async #create(step: CreateStep, why: Parameters<Fleet['request']>[2]): Promise<void> {
    const { pool, size, region, host, machines, replaces } = step;
    const place = region !== undefined && host !== undefined ? { region, host } : undefined;
    const accepted = await this.#options.fleet.request(pool, machines.length, {
      ...why,
      size,
      host: place,
      // The replacement is stored at once, with these machines.
      isDurable: replaces !== undefined,
    });
    const requested = accepted.machines.map((id, index) => ({
      id,
      pods: machines[index]?.pods.map(({ uid }) => uid) ?? [],
    }));
    this.#memory = rememberRequested(
      this.#memory,
      requested,
      replaces && { replaces, at: this.#options.clock.now() },
    );
  }

  async #pausePools(pauses: Decision['pauses']): Promise<void> {
    for (const { pool, ...pause } of pauses) {
      await this.#options.fleet.pausePool(pool, pause);
      await this.#recorder.recordPause(pool, pause);
    }
  }

  #drainingNodes(): readonly string[] {
    const { fleet } = this.#options;
    return this.#current.pools
      .flatMap(({ name }) => fleet.view.index.drainingOf(name))
      .flatMap(({ nodeName }) => nodeName ?? []);
  }

  /** Until the cluster or the settings change, the next decision is due, or the scan interval is over. */
  async #waitForNext(signal: AbortSignal): Promise<void> {
    const { cluster, clock } = this.#options;
    const now = clock.now();
    const dueAt = Math.min(
      this.#stabilization.dueAt ?? Number.POSITIVE_INFINITY,
      this.#nextAt ?? Number.POSITIVE_INFINITY,
      this.#decidedAt + this.#current.scanMs,
    );
    const waitMs = dueAt <= now ? IDLE_MS : dueAt - now;
    const done = new AbortController();
    const either = AbortSignal.any([signal, done.signal]);
    try {
      await Promise.race([
        clock.sleep(waitMs, { signal: either }),
        cluster.waitForChange({ afterRevision: this.#observer.revision, signal: either }),
        aborted(this.#replaced.signal, done.signal),
      ]);
      await clock.sleep(COALESCE_MS, { signal });
    } finally {
      done.abort();
    }
  }
}

/** Resolves when `signal` aborts; `stop` only ends the wait. */
function aborted(signal: AbortSignal, stop: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) resolve();
  signal.addEventListener('abort', () => resolve(), { once: true, signal: stop });
  return promise;
}

function shortestWindowMs({ pools }: AutoscalerSettings): number {
  const windows = pools.map(({ scaleUp }) => scaleUp.stabilizationWindowMs);
  return windows.length === 0 ? 0 : Math.min(...windows);
}

function uidsOf({ nodes, pending }: Observed): Uids {
  const pods = new Map(pending.map((pod) => [podKey(pod), pod.uid]));
  return { node: (name) => nodes.get(name)?.uid, pod: (key) => pods.get(key) };
}
