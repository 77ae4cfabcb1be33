// SPDX-License-Identifier: Apache-2.0
import type { TaskKind } from '../model/machine.ts';
import { NotFound, PvescalerError } from '../ports/errors.ts';
import type { CallOptions, RunningTask, TaskRef, TaskStatus } from '../ports/hypervisor.ts';
import { rejectOnAbort } from './abort.ts';
import type { ApiClient } from './api-client.ts';
import { encodeSegment } from './form.ts';
import { asObject, asObjects, asText } from './json.ts';
import { translateTaskFailure } from './translate-errors.ts';
import { parseUpid, requireUpid, TASK_TYPES, toRunningTask, type Upid } from './upid.ts';

/** From so many of one host on, its list of running tasks is cheaper than asking for each. */
const MIN_TASKS_TO_LIST = 4;
/** Beyond anything one host has under way. */
const MAX_LISTED_TASKS = 1_000;

interface StatusQuery {
  readonly upid: Upid;
  readonly options: CallOptions;
  resolve(status: TaskStatus | Promise<TaskStatus>): void;
}

/** Tasks, asked at the host that runs them: no other one knows their end. */
export class Tasks {
  readonly #api: ApiClient;
  /** Asked in the same instant, to be answered together. */
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
    const own = (owner: string) => owner.split('!')[0] === this.#api.user;
    return upids.filter((upid) => upid.type === type && own(upid.owner)).map(toRunningTask);
  }

  async log(task: TaskRef, lines: number, options: CallOptions): Promise<readonly string[]> {
    const upid = requireUpid(task.upid);
    const first = await this.#readLogPage(upid, { start: 0, limit: lines, ...options });
    const total = first.total ?? first.lines.length;
    if (total <= lines) return first.lines;
    return (await this.#readLogPage(upid, { start: total - lines, limit: lines, ...options }))
      .lines;
  }

  #readStatuses(): void {
    const byHost = Map.groupBy(this.#queries, (queries) => queries.upid.host);
    this.#queries = [];
    for (const [host, queries] of byHost) {
      if (queries.length < MIN_TASKS_TO_LIST) {
        for (const one of queries) one.resolve(this.#readStatus(one.upid, one.options));
      } else this.#readStatusesFromList(host, queries);
    }
  }

  /** One list tells which still run; only those that do not are asked for their end. */
  #readStatusesFromList(host: string, queries: readonly StatusQuery[]): void {
    // On nobody's signal: one who gives up must not take the answer from the others.
    const running = this.#listRunning(host, {}).then(
      (upids) => new Set(upids.map((upid) => upid.text)),
      // The list is a saving, not a need: whatever is wrong shows when each is asked for itself.
      () => new Set<string>(),
    );
    for (const one of queries) {
      const status = rejectOnAbort(running, one.options.signal).then((listed) =>
        listed.has(one.upid.text)
          ? ({ state: 'running' } as const)
          : this.#readStatus(one.upid, one.options),
      );
      one.resolve(status);
    }
  }

  async #readStatus(upid: Upid, options: CallOptions): Promise<TaskStatus> {
    try {
      const data = await this.#api.requestData({
        method: 'GET',
        path: `/nodes/${encodeSegment(upid.host)}/tasks/${encodeSegment(upid.text)}/status`,
        operation: `follow ${upid.type} on ${upid.host}`,
        host: upid.host,
        facts: { upid: upid.text },
        ...options,
      });
      return parseTaskStatus(upid, data);
    } catch (error) {
      throw isPermissionMissing(error) ? taskOfOtherToken(upid, error) : error;
    }
  }

  async #listRunning(
    host: string,
    options: CallOptions & { readonly type?: string },
  ): Promise<readonly Upid[]> {
    const data = await this.#api.requestData({
      method: 'GET',
      path: `/nodes/${encodeSegment(host)}/tasks`,
      query: { source: 'active', typefilter: options.type, limit: MAX_LISTED_TASKS },
      operation: `list the tasks on ${host}`,
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
      operation: `read the log of ${upid.type} on ${upid.host}`,
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
  const message = asText(status['exitstatus']) ?? 'ended without an exit status';
  const warnings = /^WARNINGS: (\d+)/.exec(message)?.[1];
  if (message === 'OK' || warnings !== undefined) {
    return { state: 'ended', succeeded: true, warnings: Number(warnings ?? 0), message };
  }
  const failure = translateTaskFailure(message, {
    operation: `${upid.type} ${upid.subject} on ${upid.host}`,
    facts: { upid: upid.text, host: upid.host },
    secrets: [],
  });
  return { state: 'ended', succeeded: false, warnings: 0, message, failure };
}

/** A token sees its own tasks only; after it was replaced, the tasks of the old one are out of sight. */
function isPermissionMissing(error: unknown): error is PvescalerError {
  return error instanceof PvescalerError && error.code === 'PERMISSION_MISSING';
}

function taskOfOtherToken(upid: Upid, cause: PvescalerError): NotFound {
  return new NotFound('TASK_NOT_FOUND', `the task belongs to ${upid.owner}`, {
    cause,
    facts: { upid: upid.text },
  });
}
