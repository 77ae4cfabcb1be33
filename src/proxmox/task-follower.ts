// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import { Cancelled, PvescalerError, TimedOut } from '../ports/errors.ts';
import type { Hypervisor, TaskRef, TaskStatus } from '../ports/hypervisor.ts';

export type EndedTask = TaskStatus & { readonly state: 'ended' };

export interface FollowOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

interface Followed {
  readonly task: TaskRef;
  readonly giveUpAt: number;
  pollAt: number;
  pauseMs: number;
  isAsked: boolean;
  resolve(status: EndedTask): void;
  reject(error: unknown): void;
}

/** All polls fall on multiples of this, so that those due together are asked for together. */
const BEAT_MS = 250;
const LONGEST_PAUSE_MS = 5_000;
const GROWTH = 1.5;
/** Polls under way at once; the rest of a beat waits for the next. */
const POLLS_AT_ONCE = 32;

/**
 * Follows tasks to their end: one loop for all of a region, which runs only while there is something to
 * follow. A task is asked for after a quarter of a second, then less and less often. Trouble on the way
 * (a host that does not answer) is no end; only its answer, its timeout or the caller's signal is.
 */
export class TaskFollower {
  readonly #hypervisor: Pick<Hypervisor, 'task'>;
  readonly #clock: Clock;
  readonly #followed = new Set<Followed>();
  #isBeating = false;

  constructor(hypervisor: Pick<Hypervisor, 'task'>, clock: Clock) {
    this.#hypervisor = hypervisor;
    this.#clock = clock;
  }

  /** TimedOut/TASK_TIMED_OUT leaves the task running. A failed task resolves, with its failure. */
  follow(task: TaskRef, options: FollowOptions): Promise<EndedTask> {
    const now = this.#clock.monotonic();
    return new Promise((resolve, reject) => {
      const { signal } = options;
      if (signal?.aborted === true) return reject(cancelled(task));
      const done = () => {
        signal?.removeEventListener('abort', onAbort);
        this.#followed.delete(followed);
      };
      const followed: Followed = {
        task,
        giveUpAt: now + options.timeoutMs,
        pollAt: now + BEAT_MS,
        pauseMs: BEAT_MS,
        isAsked: false,
        resolve: (status) => {
          done();
          resolve(status);
        },
        reject: (error) => {
          done();
          reject(error instanceof Error ? error : new Error(String(error)));
        },
      };
      const onAbort = () => followed.reject(cancelled(task));
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#followed.add(followed);
      if (!this.#isBeating) void this.#beat();
    });
  }

  async #beat(): Promise<void> {
    this.#isBeating = true;
    while (this.#followed.size > 0) {
      const now = this.#clock.monotonic();
      await this.#clock.sleep(BEAT_MS - (now % BEAT_MS));
      this.#pollDue(this.#clock.monotonic());
    }
    this.#isBeating = false;
  }

  /** Not waited for: a host that hangs must not keep the tasks of the others from being asked for. */
  #pollDue(now: number): void {
    const all = [...this.#followed];
    const free = POLLS_AT_ONCE - all.filter((one) => one.isAsked).length;
    const due = all.filter((one) => !one.isAsked && one.pollAt <= now);
    for (const one of due.slice(0, free)) void this.#poll(one);
  }

  async #poll(followed: Followed): Promise<void> {
    followed.isAsked = true;
    try {
      const status = await this.#hypervisor.task(followed.task);
      if (status.state === 'ended') return followed.resolve(status);
    } catch (error) {
      if (!isPassing(error)) return followed.reject(error);
    }
    followed.isAsked = false;
    const now = this.#clock.monotonic();
    if (now >= followed.giveUpAt) return followed.reject(tookTooLong(followed.task));
    followed.pauseMs = Math.min(followed.pauseMs * GROWTH, LONGEST_PAUSE_MS);
    followed.pollAt = Math.min(now + followed.pauseMs, followed.giveUpAt);
  }
}

function isPassing(error: unknown): boolean {
  return error instanceof PvescalerError && error.retry === 'backoff';
}

function cancelled(task: TaskRef): Cancelled {
  return new Cancelled('CANCELLED', 'nobody waits for the task any more', {
    facts: { upid: task.upid },
  });
}

function tookTooLong(task: TaskRef): TimedOut {
  return new TimedOut('TASK_TIMED_OUT', 'the task has not ended in time', {
    facts: { upid: task.upid },
  });
}
