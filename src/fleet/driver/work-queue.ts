// SPDX-License-Identifier: Apache-2.0
// One queue of machines to reconcile, keyed by machine id. A machine is never reconciled twice at the same time, and
// each lane (a host) has a bounded number of workers: a host that does not answer holds its own workers and no others.
import type { Clock } from '../../ports/clock.ts';
import type { ReconcileResult } from '../context/machine-reconcile.ts';

/** Machines of one lane share its workers. */
export interface Lane {
  readonly name: string;
  readonly workers: number;
}

export interface WorkQueueOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly laneOf: (id: string) => Lane;
  /** Reconciles one machine. `continue` is treated as an immediate requeue. */
  readonly work: (id: string) => Promise<ReconcileResult>;
  /** Receives what `work` rejects with; the machine is requeued after a second. */
  readonly onError: (error: unknown) => void;
}

const RETRY_MS = 1_000;

interface Item {
  readonly id: string;
  /** On the monotonic clock: setting the wall clock moves no requeue. */
  dueAt: number;
  because: string;
  isRunning: boolean;
  /** Added again while it was running. */
  isRequested: boolean;
  /** To be run again if it ends with `done`. */
  isRequestedIfDone: boolean;
}

export class WorkQueue {
  /** Fires when an item is added or has ended: something may have become due. */
  readonly changed = new WakeSignal();
  readonly #options: WorkQueueOptions;
  readonly #items = new Map<string, Item>();
  readonly #busyWorkers = new Map<string, number>();
  readonly #running = new Set<Promise<void>>();

  constructor(options: WorkQueueOptions) {
    this.#options = options;
  }

  /** Makes the machine due now, also if it waits for a later time. */
  add(id: string): void {
    const item = this.#items.get(id);
    const now = this.#options.clock.monotonic();
    if (item === undefined) this.#insert(id, now);
    else if (item.isRunning) item.isRequested = true;
    else item.dueAt = Math.min(item.dueAt, now);
    this.changed.wake();
  }

  /** Makes the machine due now unless it is running or waits for a time of its own. */
  addIfAbsent(id: string): void {
    const item = this.#items.get(id);
    if (item === undefined) this.add(id);
    else if (item.isRunning) item.isRequestedIfDone = true;
  }

  /** Whether a worker or `runExclusive` has the machine. */
  isRunning(id: string): boolean {
    return this.#items.get(id)?.isRunning ?? false;
  }

  /** Runs `work` while the machine is not reconciled, which is then due. False, and nothing done, while it is. */
  async runExclusive(id: string, work: () => Promise<void>): Promise<boolean> {
    if (this.isRunning(id)) return false;
    this.addIfAbsent(id);
    const item = this.#items.get(id);
    if (item === undefined) return false;
    item.isRunning = true;
    try {
      await work();
    } finally {
      this.#schedule(item, { next: 'continue' });
      this.changed.wake();
    }
    return true;
  }

  /** Why the machine waits; undefined when it is not in the queue. */
  reasonOf(id: string): string | undefined {
    return this.#items.get(id)?.because;
  }

  /** Starts every machine that is due and whose lane has a free worker. */
  startDue(): void {
    const now = this.#options.clock.monotonic();
    const due = [...this.#items.values()].filter(
      ({ isRunning, dueAt }) => !isRunning && dueAt <= now,
    );
    for (const item of due.sort((a, b) => a.dueAt - b.dueAt)) {
      const lane = this.#options.laneOf(item.id);
      const busy = this.#busyWorkers.get(lane.name) ?? 0;
      if (busy < lane.workers) this.#start(item, lane.name);
    }
  }

  /** On the monotonic clock. Machines that are due and wait for a worker do not count: `changed` fires for them. */
  nextDueAt(): number {
    const now = this.#options.clock.monotonic();
    let next = Number.POSITIVE_INFINITY;
    for (const { isRunning, dueAt } of this.#items.values()) {
      if (!isRunning && dueAt > now) next = Math.min(next, dueAt);
    }
    return next;
  }

  /** Resolves when nothing is running. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** Reconciles until nothing is due, or `isStopped`; waits for everything that is running. */
  async drain(isStopped: () => boolean): Promise<void> {
    for (;;) {
      if (!isStopped()) this.startDue();
      if (this.#running.size === 0) return;
      await Promise.race(this.#running);
    }
  }

  #insert(id: string, dueAt: number): void {
    this.#items.set(id, {
      id,
      dueAt,
      because: 'added',
      isRunning: false,
      isRequested: false,
      isRequestedIfDone: false,
    });
  }

  #start(item: Item, lane: string): void {
    item.isRunning = true;
    this.#busyWorkers.set(lane, (this.#busyWorkers.get(lane) ?? 0) + 1);
    const running = this.#run(item).finally(() => {
      this.#busyWorkers.set(lane, (this.#busyWorkers.get(lane) ?? 1) - 1);
      this.#running.delete(running);
      this.changed.wake();
    });
    this.#running.add(running);
  }

  async #run(item: Item): Promise<void> {
    let result: ReconcileResult;
    try {
      result = await this.#options.work(item.id);
    } catch (error) {
      this.#options.onError(error);
      result = { next: 'requeue', afterMs: RETRY_MS, because: 'error' };
    }
    this.#schedule(item, result);
  }

  #schedule(item: Item, result: ReconcileResult): void {
    item.isRunning = false;
    const now = this.#options.clock.monotonic();
    const isRequested = item.isRequested || (item.isRequestedIfDone && result.next === 'done');
    item.isRequested = false;
    item.isRequestedIfDone = false;
    if (isRequested || result.next === 'continue') {
      item.dueAt = now;
    } else if (result.next === 'requeue') {
      // Whole milliseconds: a fraction below the resolution of the clock would never pass.
      item.dueAt = now + Math.ceil(result.afterMs);
      item.because = result.because;
    } else this.#items.delete(item.id);
  }
}

/** Ends a wait early. A wake-up without a waiter is kept for the next wait, until `reset`. */
export class WakeSignal {
  #controller = new AbortController();

  /** Aborted after `wake`. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  wake(): void {
    this.#controller.abort('wake');
  }

  /** Later waits wait for the next wake-up. */
  reset(): void {
    if (this.#controller.signal.aborted) this.#controller = new AbortController();
  }
}
