// SPDX-License-Identifier: Apache-2.0
// One queue of work, keyed by machine id or by the name of a host job. A key is never worked on twice at the same time,
// and each lane (a host) has a bounded number of workers: a host that does not answer holds its own workers and no
// others.
import type { Clock } from '../../ports/clock.ts';
import type { ReconcileResult } from '../context/machine-reconcile.ts';

/** Machines of one lane share its workers. */
export interface Lane {
  readonly name: string;
  readonly workers: number;
}

export interface WorkQueueOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
  readonly laneOf: (id: string) => Lane;
  /** Works on one key. `continue` is treated as an immediate requeue. */
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
  /** `waiting` for its time, `due` and waiting for a worker of its lane, or `running`. */
  state: 'waiting' | 'due' | 'running';
  /** Added again while it was running. */
  isRequested: boolean;
  /** To be run again if it ends with `done`. */
  isRequestedIfDone: boolean;
}

interface LaneState {
  busyWorkers: number;
  /** In the order in which they became due. */
  readonly due: Item[];
}

export class WorkQueue {
  /** Fires when an item is added or has ended: something may have become due. */
  readonly changed = new WakeSignal();
  readonly #options: WorkQueueOptions;
  readonly #items = new Map<string, Item>();
  readonly #timers = new TimerHeap();
  readonly #lanes = new Map<string, LaneState>();
  /** Lanes with due machines; startDue looks at no others. */
  readonly #lanesWithDue = new Map<string, Lane>();
  readonly #running = new Set<Promise<void>>();

  constructor(options: WorkQueueOptions) {
    this.#options = options;
  }

  /** Makes the machine due now, also if it waits for a later time. */
  add(id: string): void {
    const item = this.#items.get(id) ?? this.#insert(id);
    if (item.state === 'running') item.isRequested = true;
    else if (item.state === 'waiting') this.#makeDue(item);
    this.changed.wake();
  }

  /** Makes the machine due now unless it is running or waits for a time of its own. */
  addIfAbsent(id: string): void {
    const item = this.#items.get(id);
    if (item === undefined) this.add(id);
    else if (item.state === 'running') item.isRequestedIfDone = true;
  }

  /** Whether a worker or `runExclusive` has the machine. */
  isRunning(id: string): boolean {
    return this.#items.get(id)?.state === 'running';
  }

  /** Runs `work` while the machine is not reconciled, which is then due. False, and nothing done, while it is. */
  async runExclusive(id: string, work: () => Promise<void>): Promise<boolean> {
    const item = this.#items.get(id) ?? this.#insert(id);
    if (item.state === 'running') return false;
    // A machine that is due stays in its lane; startDue skips it while it is running.
    item.state = 'running';
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
    for (let item = this.#nextTimer(now); item !== undefined; item = this.#nextTimer(now)) {
      this.#timers.pop();
      this.#makeDue(item);
    }
    for (const lane of this.#lanesWithDue.values()) this.#startLane(lane);
  }

  /** On the monotonic clock. Machines that are due and wait for a worker do not count: `changed` fires for them. */
  nextDueAt(): number {
    this.#dropStaleTimers();
    return this.#timers.first?.dueAt ?? Number.POSITIVE_INFINITY;
  }

  /** Starts what is due and waits until these keys have been worked on, at most `maxMs`. */
  async settle(keys: readonly string[], maxMs: number): Promise<void> {
    const isBusy = (key: string) => (this.#items.get(key)?.state ?? 'waiting') !== 'waiting';
    const { clock } = this.#options;
    const until = clock.monotonic() + maxMs;
    const over = new AbortController();
    const deadline = clock.sleep(maxMs, { signal: over.signal }).catch(() => undefined);
    for (;;) {
      this.startDue();
      if (clock.monotonic() >= until || !keys.some(isBusy)) break;
      await Promise.race([deadline, ...this.#running]);
    }
    over.abort();
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

  #insert(id: string): Item {
    const item: Item = {
      id,
      dueAt: this.#options.clock.monotonic(),
      because: 'added',
      state: 'waiting',
      isRequested: false,
      isRequestedIfDone: false,
    };
    this.#items.set(id, item);
    return item;
  }

  #makeDue(item: Item): void {
    item.state = 'due';
    const lane = this.#options.laneOf(item.id);
    const state = this.#lanes.get(lane.name) ?? { busyWorkers: 0, due: [] };
    this.#lanes.set(lane.name, state);
    state.due.push(item);
    this.#lanesWithDue.set(lane.name, lane);
  }

  #startLane({ name, workers }: Lane): void {
    const lane = this.#lanes.get(name);
    if (lane === undefined) return;
    let started = 0;
    for (const item of lane.due) {
      if (lane.busyWorkers >= workers) break;
      started += 1;
      // `runExclusive` took it meanwhile, and makes it due again.
      if (item.state === 'due') this.#start(item, lane);
    }
    lane.due.splice(0, started);
    if (lane.due.length === 0) this.#lanesWithDue.delete(name);
  }

  /** The first machine whose time has come; undefined when there is none. */
  #nextTimer(now: number): Item | undefined {
    this.#dropStaleTimers();
    const first = this.#timers.first;
    return first !== undefined && first.dueAt <= now ? first.item : undefined;
  }

  /** A timer is stale when its machine was added, removed or requeued since. */
  #dropStaleTimers(): void {
    for (let first = this.#timers.first; first !== undefined; first = this.#timers.first) {
      const { item, dueAt } = first;
      const isCurrent = item.state === 'waiting' && item.dueAt === dueAt;
      if (isCurrent && this.#items.get(item.id) === item) return;
      this.#timers.pop();
    }
  }

  #start(item: Item, lane: LaneState): void {
    item.state = 'running';
    lane.busyWorkers += 1;
    const running = this.#run(item).finally(() => {
      lane.busyWorkers -= 1;
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
    const isRequested = item.isRequested || (item.isRequestedIfDone && result.next === 'done');
    item.isRequested = false;
    item.isRequestedIfDone = false;
    if (isRequested || result.next === 'continue') this.#makeDue(item);
    else if (result.next === 'requeue') {
      item.state = 'waiting';
      // Whole milliseconds: a fraction below the resolution of the clock would never pass.
      item.dueAt = this.#options.clock.monotonic() + Math.ceil(result.afterMs);
      item.because = result.because;
      this.#timers.push({ item, dueAt: item.dueAt });
    } else this.#items.delete(item.id);
  }
}

interface Timer {
  readonly item: Item;
  readonly dueAt: number;
}

/** A binary heap of timers, the earliest first. */
class TimerHeap {
  readonly #timers: Timer[] = [];

  get first(): Timer | undefined {
    return this.#timers[0];
  }

  push(timer: Timer): void {
    this.#timers.push(timer);
    let at = this.#timers.length - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#dueAt(parent) <= timer.dueAt) break;
      this.#swap(at, parent);
      at = parent;
    }
  }

  pop(): void {
    const last = this.#timers.pop();
    if (last === undefined || this.#timers.length === 0) return;
    this.#timers[0] = last;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const child = this.#dueAt(left + 1) < this.#dueAt(left) ? left + 1 : left;
      if (this.#dueAt(child) >= last.dueAt) return;
      this.#swap(at, child);
      at = child;
    }
  }

  #dueAt(at: number): number {
    return this.#timers[at]?.dueAt ?? Number.POSITIVE_INFINITY;
  }

  #swap(one: number, other: number): void {
    const [a, b] = [this.#timers[one], this.#timers[other]];
    if (a === undefined || b === undefined) return;
    this.#timers[one] = b;
    this.#timers[other] = a;
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
