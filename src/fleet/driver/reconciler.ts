// SPDX-License-Identifier: Apache-2.0
// Passes over the fleet and the work queue of its machines, under one lease. A pass and the queue's workers run at the
// same time; a machine is changed either by its worker or by a pass, never by both (see apply-intents.ts).

import { isPhaseSettled, type MachineId, parseMachineId } from '../../model/machine.ts';
import { asPvescalerError } from '../../ports/errors.ts';
import { CREATION_PHASES } from '../capacity/place.ts';
import { readCluster } from '../context/cluster-reading.ts';
import type { WriteAuthority } from '../context/driver-lease.ts';
import { DriverState } from '../context/driver-state.ts';
import type { HostJob, HostJobs, HostJobTarget } from '../context/host-jobs.ts';
import { isMachineError } from '../context/machine-error.ts';
import { DONE, type ReconcileResult, requeue } from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { reconcileMachine } from '../machine/reconcile-machine.ts';
import { placeFreed } from '../machine/requested.ts';
import { type EngineOptions, type PassReport, runPass } from './reconcile-pass.ts';
import { type Lane, WorkQueue } from './work-queue.ts';

/** Machines of one host that are reconciled at the same time. */
const WORKERS_PER_HOST = 4;
/** Queries to guests that are still booting hold a worker of Proxmox's API, of which a host has three, for seconds. */
const GUEST_WORKERS_PER_HOST = 3;

/** Drains wait for Kubernetes, not for a host. */
const DRAIN_LANE: Lane = { name: 'drains', workers: 8 };

/** Shorter than any requeue that waits for a Node. Each new list of Nodes costs an index over all of them. */
const CLUSTER_REFRESH_MS = 250;

/** A pass waits this long for its host jobs; hosts that answer take a fraction of it. */
const JOB_WAIT_MS = 2_000;
const INITIAL_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 5 * 60_000;

interface StartedJob {
  readonly target: HostJobTarget;
  readonly job: HostJob;
  errors: number;
}

export interface ReconcilerOptions {
  /** Receives what a worker could not handle as the error of its machine: a lost lease, an unusable store. */
  readonly onError: (error: unknown) => void;
  readonly state?: DriverState;
}

export class Reconciler implements HostJobs {
  readonly queue: WorkQueue;
  readonly #options: EngineOptions;
  readonly #state: DriverState;
  readonly #jobs = new Map<string, StartedJob>();
  #context: ReconcileContext | undefined;
  #placing: Promise<void> = Promise.resolve();
  #hasFailed = false;
  #clusterReadAt = Number.NEGATIVE_INFINITY;

  constructor(options: EngineOptions, { onError, state = new DriverState() }: ReconcilerOptions) {
    this.#options = options;
    this.#state = state;
    this.queue = new WorkQueue({
      clock: options.clock,
      laneOf: (id) => this.#laneOf(id),
      work: (id) => this.#work(id),
      onError: (error) => {
        this.#hasFailed = true;
        onError(error);
      },
    });
  }

  pass(authority: WriteAuthority): Promise<PassReport> {
    return runPass(this.#options, {
      authority,
      state: this.#state,
      queue: this.queue,
      jobs: this,
      onContext: (context) => {
        this.#context = context;
      },
      exclusive: (work) => this.#exclusive(work),
    });
  }

  start(key: string, target: HostJobTarget, job: HostJob): void {
    if (!this.#jobs.has(key)) this.#jobs.set(key, { target, job, errors: 0 });
    this.queue.addIfAbsent(key);
  }

  settle(keys: readonly string[]): Promise<void> {
    return keys.length === 0 ? Promise.resolve() : this.queue.settle(keys, JOB_WAIT_MS);
  }

  /** Machines that are neither ready nor over, and orphaned VMs that are being removed. */
  countInProgress(): number {
    const machines = this.#options.cache.machines.all().filter((one) => !isPhaseSettled(one));
    return machines.length + this.#state.orphanedVms;
  }

  /** Reconciles until no machine is due, or until the first error that concerns more than one machine. */
  async drain(): Promise<void> {
    this.#hasFailed = false;
    await this.queue.drain(() => this.#hasFailed);
    await this.#placing;
  }

  /** Queries to booting guests and evictions take seconds; they have workers of their own. */
  #laneOf(id: string): Lane {
    const job = this.#jobs.get(id);
    if (job !== undefined) return hostLane(job.target);
    const machine = this.#options.cache.machines.get(id);
    const { region = '', host = '' } = machine?.placement ?? {};
    if (machine?.phase === 'booting')
      return { name: `${region}/${host} guests`, workers: GUEST_WORKERS_PER_HOST };
    return machine?.phase === 'draining' ? DRAIN_LANE : hostLane({ region, host });
  }

  async #work(text: string): Promise<ReconcileResult> {
    const context = this.#context;
    const job = this.#jobs.get(text);
    if (context !== undefined && job !== undefined) return this.#runJob(context, text, job);
    const id = parseMachineId(text);
    if (context === undefined || !id.ok) return DONE;
    await this.#refreshCluster(context);
    const wasCreating = this.#isCreating(id.value);
    const result = await reconcileMachine(context, id.value);
    if (wasCreating && !this.#isCreating(id.value)) await this.#placeFreed();
    return result;
  }

  // oxlint-disable-next-line max-params -- context, key and job
  async #runJob(
    context: ReconcileContext,
    key: string,
    started: StartedJob,
  ): Promise<ReconcileResult> {
    try {
      const result = await started.job(context);
      // A requeue is no success: the task that it waits for may fail again.
      if (result.next === 'done') this.#jobs.delete(key);
      return result;
    } catch (thrown) {
      const error = asPvescalerError(thrown);
      if (!isMachineError(error)) throw error;
      context.reportIfBug(error, key);
      const backoffMs = Math.min(INITIAL_BACKOFF_MS * 2 ** started.errors, MAX_BACKOFF_MS);
      started.errors += 1;
      await context.recordOnce(key, {
        kind: 'failed',
        subject: started.target,
        reason: error.code,
        message: `${key}: ${error.message}`,
      });
      return requeue(backoffMs, error.code);
    }
  }

  /** A pass may take long; a worker must not decide on the cluster as it was at its beginning. */
  async #refreshCluster(context: ReconcileContext): Promise<void> {
    const now = this.#options.clock.monotonic();
    if (now - this.#clusterReadAt < CLUSTER_REFRESH_MS) return;
    this.#clusterReadAt = now;
    context.clusterReading = await readCluster(this.#options, this.#state);
  }

  #isCreating(id: MachineId): boolean {
    const phase = this.#options.cache.machines.get(id)?.phase;
    return phase !== undefined && CREATION_PHASES.includes(phase);
  }

  /** A creation has ended: a machine that waited for its host or storage can be placed. */
  #placeFreed(): Promise<void> {
    return this.#exclusive(async () => {
      // The newest context: `unplaced` belongs to its view.
      const context = this.#context;
      if (context === undefined) return;
      const { placed, unplaced } = await placeFreed(context, this.#state.unplaced);
      this.#state.unplaced = unplaced;
      for (const { id } of placed) this.queue.add(id);
    });
  }

  /** One placement at a time: each must see what the one before reserved. */
  #exclusive(work: () => Promise<void>): Promise<void> {
    const next = this.#placing.then(work);
    this.#placing = next.catch(() => undefined);
    return next;
  }
}

function hostLane({ region, host }: HostJobTarget): Lane {
  return { name: `${region}/${host}`, workers: WORKERS_PER_HOST };
}
