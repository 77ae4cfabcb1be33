// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import { Cancelled, PvescalerError, TimedOut } from '../ports/errors.ts';
import type { Hypervisor, TaskRef, TaskStatus } from '../ports/hypervisor.ts';

export type EndedTask = TaskStatus & { readonly state: 'ended' };

export interface FollowOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

interface FollowedTask {
  readonly task: TaskRef;
  readonly deadline: number;
  pollAt: number;
  pollIntervalMs: number;
  isPolling: boolean;
  resolve(status: EndedTask): void;
  reject(error: unknown): void;
}

/** All polls happen at multiples of this, so that the tasks due together are queried in one batch. */
const TICK_MS = 250;
const MAX_POLL_INTERVAL_MS = 5_000;
const POLL_INTERVAL_FACTOR = 1.5;
/** Due tasks beyond this limit wait for the next tick. */
const MAX_CONCURRENT_POLLS = 32;

/**
 * Follows tasks to their end: one polling loop per region, which runs only while there are tasks to follow. The poll
 * interval starts at 250 ms and grows. Transient errors, such as a host that does not respond, do not end it; only the
 * task's exit status, a permanent error, the timeout or the caller's signal do.
 */
export class TaskFollower {
  readonly #hypervisor: Pick<Hypervisor, 'task'>;
  readonly #clock: Clock;
  readonly #followed = new Set<FollowedTask>();
  #isRunning = false;

  constructor(hypervisor: Pick<Hypervisor, 'task'>, clock: Clock) {
    this.#hypervisor = hypervisor;
    this.#clock = clock;
  }

  /** Resolves for a failed task too, with its failure. TimedOut/TASK_TIMED_OUT leaves the task running. */
  follow(task: TaskRef, options: FollowOptions): Promise<EndedTask> {
    const now = this.#clock.monotonic();
    return new Promise((resolve, reject) => {
      const { signal } = options;
      if (signal?.aborted === true) return reject(followCancelled(task));
      const done = () => {
        signal?.removeEventListener('abort', onAbort);
        this.#followed.delete(followed);
      };
      const followed: FollowedTask = {
        task,
        deadline: now + options.timeoutMs,
        pollAt: now + TICK_MS,
        pollIntervalMs: TICK_MS,
        isPolling: false,
        resolve: (status) => {
          done();
          resolve(status);
        },
        reject: (error) => {
          done();
          reject(error instanceof Error ? error : new Error(String(error)));
        },
      };
      const onAbort = () => followed.reject(followCancelled(task));
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#followed.add(followed);
      if (!this.#isRunning) void this.#pollUntilEmpty();
    });
  }

  async #pollUntilEmpty(): Promise<void> {
    this.#isRunning = true;
    while (this.#followed.size > 0) {
      const now = this.#clock.monotonic();
      await this.#clock.sleep(TICK_MS - (now % TICK_MS));
      this.#pollDue(this.#clock.monotonic());
    }
    this.#isRunning = false;
  }

  /** Does not wait for the polls: a host that hangs must not delay the tasks of other hosts. */
  #pollDue(now: number): void {
    const followed = [...this.#followed];
    const free = MAX_CONCURRENT_POLLS - followed.filter((task) => task.isPolling).length;
    const due = followed.filter((task) => !task.isPolling && task.pollAt <= now);
    for (const task of due.slice(0, free)) void this.#poll(task);
  }

  async #poll(followed: FollowedTask): Promise<void> {
    followed.isPolling = true;
    try {
      const status = await this.#hypervisor.task(followed.task);
      if (status.state === 'ended') return followed.resolve(status);
    } catch (error) {
      if (!isTransient(error)) return followed.reject(error);
    }
    followed.isPolling = false;
    const now = this.#clock.monotonic();
    if (now >= followed.deadline) return followed.reject(taskTimedOut(followed.task));
    followed.pollIntervalMs = Math.min(
      followed.pollIntervalMs * POLL_INTERVAL_FACTOR,
      MAX_POLL_INTERVAL_MS,
    );
    followed.pollAt = Math.min(now + followed.pollIntervalMs, followed.deadline);
  }
}

function isTransient(error: unknown): boolean {
  return error instanceof PvescalerError && error.retry === 'backoff';
}

function followCancelled(task: TaskRef): Cancelled {
  return new Cancelled(
    'CANCELLED',
    `the caller stopped following the ${task.kind} task on ${task.host}`,
    {
      facts: { upid: task.upid },
    },
  );
}

function taskTimedOut(task: TaskRef): TimedOut {
  return new TimedOut(
    'TASK_TIMED_OUT',
    `the ${task.kind} task on ${task.host} did not end within the timeout; it continues to run`,
    {
      facts: { upid: task.upid },
    },
  );
}
