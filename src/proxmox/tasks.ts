// SPDX-License-Identifier: Apache-2.0
import type { TaskKind } from '../model/machine.ts';
import type { Clock } from '../ports/clock.ts';
import { Cancelled, NotFound, PvescalerError, TimedOut } from '../ports/errors.ts';
import type {
  CallOptions,
  Hypervisor,
  RunningTask,
  TaskRef,
  TaskStatus,
} from '../ports/hypervisor.ts';
import type { ApiClient } from './api-client.ts';
import { rejectOnAbort } from './retry.ts';
import { translateTaskFailure } from './translate-errors.ts';
import { parseUpid, requireUpid, TASK_TYPES, toRunningTask, type Upid } from './upid.ts';
import { asObject, asObjects, asText, encodeSegment } from './wire-values.ts';

/** From this many status queries per host, one list of running tasks is cheaper than one request per task. */
const MIN_TASKS_TO_LIST = 4;
/** More than one host can run. */
const MAX_LISTED_TASKS = 1_000;

type EndedTask = TaskStatus & { readonly state: 'ended' };

interface StatusQuery {
  readonly upid: Upid;
  readonly options: CallOptions;
  resolve(status: TaskStatus | Promise<TaskStatus>): void;
}

/** Queries tasks at the host that runs them: no other host knows their exit status. */
export class Tasks {
  readonly #api: ApiClient;
  /** Queries of the same microtask, answered as one batch. */
  #queries: StatusQuery[] = [];

  constructor(api: ApiClient) {
    this.#api = api;
  }

  async status(task: TaskRef, options: CallOptions): Promise<TaskStatus> {
    const upid = requireUpid(task.upid);
    return new Promise<TaskStatus>((resolve) => {
      if (this.#queries.push({ upid, options, resolve }) === 1)
        queueMicrotask(() => this.#readStatuses());
    });
  }

  async running(
    host: string,
    kind: Exclude<TaskKind, 'other'>,
    options: CallOptions,
  ): Promise<readonly RunningTask[]> {
    const type = TASK_TYPES[kind];
    const upids = await this.#listRunning(host, { type, ...options });
    const isOwn = (owner: string) => owner.split('!')[0] === this.#api.user;
    return upids.filter((upid) => upid.type === type && isOwn(upid.owner)).map(toRunningTask);
  }

  async log(
    task: Pick<TaskRef, 'upid'>,
    lines: number,
    options: CallOptions,
  ): Promise<readonly string[]> {
    const upid = requireUpid(task.upid);
    const first = await this.#readLogPage(upid, { start: 0, limit: lines, ...options });
    const total = first.total ?? first.lines.length;
    if (total <= lines) return first.lines;
    return (await this.#readLogPage(upid, { start: total - lines, limit: lines, ...options }))
      .lines;
  }

  #readStatuses(): void {
    const byHost = Map.groupBy(this.#queries, (query) => query.upid.host);
    this.#queries = [];
    for (const [host, queries] of byHost) {
      if (queries.length < MIN_TASKS_TO_LIST) {
        for (const query of queries) query.resolve(this.#readStatus(query.upid, query.options));
      } else this.#readStatusesFromList(host, queries);
    }
  }

  /** Lists the running tasks once and requests the exit status only of tasks that are not in the list. */
  #readStatusesFromList(host: string, queries: readonly StatusQuery[]): void {
    // Without a signal: the abort of one caller must not fail the other callers.
    const running = this.#listRunning(host, {}).then(
      (upids) => new Set(upids.map((upid) => upid.text)),
      // The list is only an optimization. Without it each task is queried, and that request reports the error.
      () => new Set<string>(),
    );
    for (const query of queries) {
      const status = rejectOnAbort(running, query.options.signal).then((listed) =>
        listed.has(query.upid.text)
          ? ({ state: 'running' } as const)
          : this.#readStatus(query.upid, query.options),
      );
      query.resolve(status);
    }
  }

  async #readStatus(upid: Upid, options: CallOptions): Promise<TaskStatus> {
    try {
      const data = await this.#api.requestData({
        method: 'GET',
        path: `/nodes/${encodeSegment(upid.host)}/tasks/${encodeSegment(upid.text)}/status`,
        operation: `read the status of task ${upid.type} on ${upid.host}`,
        host: upid.host,
        facts: { upid: upid.text },
        ...options,
      });
      const status = parseTaskStatus(upid, data);
      return hasUnknownCause(status) ? await this.#addCause(upid, status, options) : status;
    } catch (error) {
      throw isPermissionMissing(error) ? taskOfOtherToken(upid, error) : error;
    }
  }

  /** `exit code 1` of a program says nothing; what the program printed is in the log. */
  async #addCause(upid: Upid, status: EndedTask, options: CallOptions): Promise<EndedTask> {
    // Without the log, the exit status alone is the message.
    const lines = await this.log({ upid: upid.text }, CAUSE_LOG_LINES, options).catch(() => []);
    const cause = findCause(lines, status.message);
    return cause === undefined ? status : failedStatus(upid, `${status.message}: ${cause}`);
  }

  async #listRunning(
    host: string,
    options: CallOptions & { readonly type?: string },
  ): Promise<readonly Upid[]> {
    const data = await this.#api.requestData({
      method: 'GET',
      path: `/nodes/${encodeSegment(host)}/tasks`,
      query: { source: 'active', typefilter: options.type, limit: MAX_LISTED_TASKS },
      operation: `list running tasks on ${host}`,
      host,
      signal: options.signal,
    });
    return asObjects(data)
      .filter((entry) => entry['endtime'] === undefined)
      .flatMap((entry) => parseUpid(asText(entry['upid']) ?? '') ?? []);
  }

  async #readLogPage(
    upid: Upid,
    page: CallOptions & { readonly start: number; readonly limit: number },
  ): Promise<{ readonly lines: readonly string[]; readonly total: number | undefined }> {
    const { data, total } = await this.#api.request({
      method: 'GET',
      path: `/nodes/${encodeSegment(upid.host)}/tasks/${encodeSegment(upid.text)}/log`,
      query: { start: page.start, limit: page.limit },
      operation: `read the log of task ${upid.type} on ${upid.host}`,
      host: upid.host,
      facts: { upid: upid.text },
      signal: page.signal,
    });
    return { lines: asObjects(data).map((line) => asText(line['t']) ?? ''), total };
  }
}

export function parseTaskStatus(upid: Upid, data: unknown): TaskStatus {
  const status = asObject(data);
  if (status['status'] !== 'stopped') return { state: 'running' };
  const message = asText(status['exitstatus']) ?? 'the task ended without an exit status';
  const warnings = /^WARNINGS: (\d+)/.exec(message)?.[1];
  if (message === 'OK' || warnings !== undefined) {
    return { state: 'ended', succeeded: true, warnings: Number(warnings ?? 0), message };
  }
  return failedStatus(upid, message);
}

function failedStatus(upid: Upid, message: string): EndedTask {
  const failure = translateTaskFailure(message, {
    operation: `task ${upid.type} ${upid.subject} on ${upid.host}`,
    facts: { upid: upid.text, host: upid.host },
    secrets: [],
  });
  return { state: 'ended', succeeded: false, warnings: 0, message, failure };
}

function hasUnknownCause(status: TaskStatus): status is EndedTask {
  return status.state === 'ended' && status.failure?.code === 'TASK_FAILED';
}

/** A program prints its error last; what follows is the clean-up. */
const CAUSE_LOG_LINES = 30;
const CAUSE = /error|fail|cannot|can't|could not|unable|denied|refused|no such|not found|no space/i;
/** The exit status again, warnings and the removal of what was created. */
const NOT_A_CAUSE = /^TASK |^WARN|exit code \d+$|^temporary |successfully removed/i;
const CREDENTIALS_IN_URL = /:\/\/[^/@\s]+@/g;

/** The last line of the log that names an error. */
function findCause(lines: readonly string[], message: string): string | undefined {
  const cause = lines
    .map((line) => line.trim())
    .findLast((line) => CAUSE.test(line) && !NOT_A_CAUSE.test(line) && !message.includes(line));
  return cause?.replaceAll(CREDENTIALS_IN_URL, '://***@');
}

/** A token may read only its own tasks. After a token is replaced, tasks of the old token are not readable. */
function isPermissionMissing(error: unknown): error is PvescalerError {
  return error instanceof PvescalerError && error.code === 'PERMISSION_MISSING';
}

function taskOfOtherToken(upid: Upid, cause: PvescalerError): NotFound {
  return new NotFound(
    'TASK_NOT_FOUND',
    `the task was started by ${upid.owner}; these credentials may not read it`,
    {
      cause,
      facts: { upid: upid.text },
    },
  );
}

interface FollowOptions {
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
    for (const late of this.#followed) {
      // A poll and its retries may take minutes.
      if (late.isPolling && late.deadline <= now) late.reject(taskTimedOut(late.task));
    }
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
