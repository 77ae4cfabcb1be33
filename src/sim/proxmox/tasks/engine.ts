// SPDX-License-Identifier: Apache-2.0
// Background tasks: start returns a UPID, the task writes a log and ends with a status. Ended tasks stay readable
// in the archive of their host, whose size is bounded.
import type { Clock } from '../../../ports/clock.ts';
import { UPID } from '../../../proxmox/wire-facts/index.ts';
import { errorText } from '../api-error.ts';

/** How many ended tasks per host stay readable by UPID. */
export const TASK_ARCHIVE_SIZE = 2000;
/** How many ended tasks per host /cluster/tasks lists. */
export const RECENT_TASK_COUNT = 25;
const MAX_LOG_LINES = 1000;

export interface TaskRequest {
  readonly host: string;
  readonly pid: number;
  readonly type: string;
  readonly id: string;
  readonly user: string;
}

export interface TaskContext {
  readonly upid: string;
  readonly signal: AbortSignal;
  /** The worker is dead: it does not clean up. False for a worker whose parent is gone. */
  isKilled(): boolean;
  readonly log: (line: string) => void;
  /** A task with N warnings ends with `WARNINGS: N`. */
  readonly warn: (line: string) => void;
  /** Sleeps for a duration at speed 1, divided by the speed. */
  readonly work: (ms: number) => Promise<void>;
}

export interface TaskRecord {
  readonly upid: string;
  readonly host: string;
  readonly pid: number;
  readonly pstart: number;
  readonly type: string;
  readonly id: string;
  readonly user: string;
  /** Seconds since 1970. */
  readonly startTime: number;
  endTime: number | undefined;
  /** `OK`, `WARNINGS: N` or the error; undefined while it runs. */
  status: string | undefined;
  /** Work so far at speed 1, without waits for locks. */
  workMs: number;
  readonly log: string[];
}

interface RunningTask {
  readonly record: TaskRecord;
  readonly abort: AbortController;
  readonly ended: Promise<void>;
}

/** Makes a task fail, or be killed, after an amount of work. */
export interface InjectedTaskFault {
  /** Milliseconds of work at speed 1. */
  readonly afterMs: number;
  readonly message: string;
  /** A killed task does not clean up. */
  readonly killed: boolean;
}

const BROKEN_PIPE = new Error('broken pipe');

type FaultInjector = (request: TaskRequest) => InjectedTaskFault | undefined;

function formatHex(value: number, digits = 8): string {
  return value.toString(16).toUpperCase().padStart(digits, '0');
}

export class TaskEngine {
  readonly #clock: Clock;
  readonly #speed: number;
  readonly #live = new Map<string, RunningTask>();
  readonly #archives = new Map<string, TaskRecord[]>();
  readonly #index = new Map<string, TaskRecord>();
  #hook: FaultInjector | undefined;
  #started = 0;

  constructor(clock: Clock, speed: number) {
    this.#clock = clock;
    this.#speed = speed;
  }

  /** The injector is called once per task and returns the fault to inject. */
  setFaultInjector(hook: FaultInjector): void {
    this.#hook = hook;
  }

  get startedTotal(): number {
    return this.#started;
  }

  start(request: TaskRequest, work: (context: TaskContext) => Promise<void>): string {
    const now = this.#clock.now();
    const startTime = Math.floor(now / 1000);
    const pstart = Math.floor(this.#clock.monotonic() / 10) + 360_000;
    const upid = `UPID:${request.host}:${formatHex(request.pid)}:${formatHex(pstart)}:${formatHex(startTime)}:${request.type}:${request.id}:${request.user}:`;
    const record: TaskRecord = {
      upid,
      ...request,
      pstart,
      startTime,
      endTime: undefined,
      status: undefined,
      workMs: 0,
      log: [],
    };
    const abort = new AbortController();
    this.#started += 1;
    this.#index.set(upid, record);
    const ended = this.#run({ request, record, abort, work });
    this.#live.set(upid, { record, abort, ended });
    return upid;
  }

  find(upid: string): TaskRecord | undefined {
    return this.#index.get(upid);
  }

  running(host?: string): TaskRecord[] {
    const records = [...this.#live.values()].map((live) => live.record);
    return host === undefined ? records : records.filter((record) => record.host === host);
  }

  /** Newest first. */
  archive(host: string): readonly TaskRecord[] {
    return (this.#archives.get(host) ?? []).toReversed();
  }

  /** Resolves when the task has ended (true) or after `timeoutMs` (false). */
  async wait(upid: string, timeoutMs: number): Promise<boolean> {
    const live = this.#live.get(upid);
    if (live === undefined) return true;
    const done = new AbortController();
    void live.ended.then(() => done.abort());
    try {
      await this.#clock.sleep(timeoutMs, { signal: done.signal });
    } catch {
      return true;
    }
    return done.signal.aborted;
  }

  /** Interrupts the worker; the work stops at its next wait. */
  stop(upid: string): void {
    this.#live.get(upid)?.abort.abort(new Error('received interrupt'));
  }

  /** The command that waits for the task lost its output: the worker cleans up and ends. */
  breakPipe(upid: string): void {
    this.#live.get(upid)?.abort.abort(BROKEN_PIPE);
  }

  /** Aborts all tasks of a host that lost power. */
  abortTasksOn(host: string): void {
    for (const { record, abort } of this.#live.values()) {
      if (record.host === host) abort.abort(new Error('unexpected status'));
    }
  }

  /** Ended tasks for a saved state, per host oldest first. */
  snapshot(): readonly TaskRecord[] {
    return [...this.#archives.values()].flat();
  }

  restore(records: readonly TaskRecord[]): void {
    for (const record of records) this.#archive(record);
  }

  async #run(task: {
    readonly request: TaskRequest;
    readonly record: TaskRecord;
    readonly abort: AbortController;
    readonly work: (context: TaskContext) => Promise<void>;
  }): Promise<void> {
    const { request, record, abort, work } = task;
    let warnings = 0;
    let worked = 0;
    const fault = this.#hook?.(request);
    const context: TaskContext = {
      upid: record.upid,
      signal: abort.signal,
      isKilled: () => abort.signal.aborted && abort.signal.reason !== BROKEN_PIPE,
      log: (line) => appendLog(record, line),
      warn: (line) => {
        warnings += 1;
        appendLog(record, `WARN: ${line}`);
      },
      work: async (ms) => {
        const left = (fault?.afterMs ?? Number.POSITIVE_INFINITY) - worked;
        worked += ms;
        record.workMs += ms;
        await this.#sleep(Math.min(ms, Math.max(0, left)), abort.signal);
        if (fault === undefined || left > ms) return;
        if (fault.killed) abort.abort(new Error(fault.message));
        throw new Error(fault.message);
      },
    };
    // The response with the UPID is sent before the worker starts.
    await Promise.resolve();
    try {
      if (fault?.afterMs === 0 && !fault.killed) throw new Error(fault.message);
      await work(context);
      this.#finish(record, warnings === 0 ? 'OK' : `WARNINGS: ${warnings}`);
    } catch (error) {
      this.#finish(
        record,
        abort.signal.aborted ? errorText(abort.signal.reason) : errorText(error),
      );
    }
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    await this.#clock.sleep(ms / this.#speed, { signal });
  }

  #finish(record: TaskRecord, status: string): void {
    record.endTime = Math.floor(this.#clock.now() / 1000);
    record.status = status.split('\n').join(' ').trim();
    appendLog(record, lastLine(record.status));
    this.#live.delete(record.upid);
    this.#archive(record);
  }

  #archive(record: TaskRecord): void {
    const archive = this.#archives.get(record.host) ?? [];
    this.#archives.set(record.host, archive);
    this.#index.set(record.upid, record);
    archive.push(record);
    if (archive.length <= TASK_ARCHIVE_SIZE * 1.25) return;
    for (const old of archive.splice(0, archive.length - TASK_ARCHIVE_SIZE)) {
      this.#index.delete(old.upid);
    }
  }
}

function lastLine(status: string): string {
  if (status === 'OK') return 'TASK OK';
  return status.startsWith('WARNINGS: ') ? `TASK ${status}` : `TASK ERROR: ${status}`;
}

function appendLog(record: TaskRecord, text: string): void {
  for (const line of text.split('\n')) {
    if (record.log.length < MAX_LOG_LINES) record.log.push(line);
  }
}

export interface ParsedUpid {
  readonly host: string;
  readonly pid: number;
  readonly pstart: number;
  readonly startTime: number;
  readonly type: string;
  readonly id: string;
  readonly user: string;
}

export function parseUpid(text: string): ParsedUpid | undefined {
  const match = UPID.exec(text);
  if (match === null) return undefined;
  const [, host = '', pid = '', pstart = '', start = '', type = '', id = '', user = ''] = match;
  return {
    host,
    pid: Number.parseInt(pid, 16),
    pstart: Number.parseInt(pstart, 16),
    startTime: Number.parseInt(start, 16),
    type,
    id,
    user,
  };
}
