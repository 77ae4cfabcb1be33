// SPDX-License-Identifier: Apache-2.0
import type { TaskKind } from '../model/machine.ts';
import { NotFound, PvescalerError } from '../ports/errors.ts';
import type { CallOptions, RunningTask, TaskRef, TaskStatus } from '../ports/hypervisor.ts';
import { unlessAborted } from './abort.ts';
import { segment } from './form.ts';
import { recordOf, recordsOf, textOf } from './json.ts';
import type { Api } from './request.ts';
import { translateTaskFailure } from './translate.ts';
import { parseUpid, runningTaskOf, TASK_TYPES, type Upid, upidOf } from './upid.ts';

/** From so many of one host on, its list of running tasks is cheaper than asking for each. */
const LIST_FROM = 4;
/** Beyond anything one host has under way. */
const LONGEST_LIST = 1_000;

interface Asked {
  readonly upid: Upid;
  readonly options: CallOptions;
  resolve(status: TaskStatus | Promise<TaskStatus>): void;
}

/** Tasks, asked at the host that runs them: no other one knows their end. */
export class Tasks {
  readonly #api: Api;
  /** Asked in the same instant, to be answered together. */
  #asked: Asked[] = [];

  constructor(api: Api) {
    this.#api = api;
  }

  async status(task: TaskRef, options: CallOptions): Promise<TaskStatus> {
    const upid = upidOf(task.upid);
    return new Promise<TaskStatus>((resolve) => {
      if (this.#asked.push({ upid, options, resolve }) === 1) queueMicrotask(() => this.#answer());
    });
  }

  async running(
    host: string,
    kind: Exclude<TaskKind, 'other'>,
    options: CallOptions,
  ): Promise<readonly RunningTask[]> {
    const type = TASK_TYPES[kind];
    const upids = await this.#runningOn(host, { type, ...options });
    const own = (owner: string) => owner.split('!')[0] === this.#api.user;
    return upids.filter((upid) => upid.type === type && own(upid.owner)).map(runningTaskOf);
  }

  async log(task: TaskRef, lines: number, options: CallOptions): Promise<readonly string[]> {
    const upid = upidOf(task.upid);
    const first = await this.#logFrom(upid, { start: 0, limit: lines, ...options });
    const total = first.total ?? first.lines.length;
    if (total <= lines) return first.lines;
    return (await this.#logFrom(upid, { start: total - lines, limit: lines, ...options })).lines;
  }

  #answer(): void {
    const byHost = Map.groupBy(this.#asked, (asked) => asked.upid.host);
    this.#asked = [];
    for (const [host, asked] of byHost) {
      if (asked.length < LIST_FROM) {
        for (const one of asked) one.resolve(this.#one(one.upid, one.options));
      } else this.#several(host, asked);
    }
  }

  /** One list tells which still run; only those that do not are asked for their end. */
  #several(host: string, asked: readonly Asked[]): void {
    // On nobody's signal: one who gives up must not take the answer from the others.
    const running = this.#runningOn(host, {}).then(
      (upids) => new Set(upids.map((upid) => upid.text)),
      // The list is a saving, not a need: whatever is wrong shows when each is asked for itself.
      () => new Set<string>(),
    );
    for (const one of asked) {
      const status = unlessAborted(running, one.options.signal).then((listed) =>
        listed.has(one.upid.text)
          ? ({ state: 'running' } as const)
          : this.#one(one.upid, one.options),
      );
      one.resolve(status);
    }
  }

  async #one(upid: Upid, options: CallOptions): Promise<TaskStatus> {
    try {
      const data = await this.#api.data({
        method: 'GET',
        path: `/nodes/${segment(upid.host)}/tasks/${segment(upid.text)}/status`,
        doing: `follow ${upid.type} on ${upid.host}`,
        host: upid.host,
        facts: { upid: upid.text },
        ...options,
      });
      return taskStatusOf(upid, data);
    } catch (error) {
      throw isAnothersTask(error) ? hidden(upid, error) : error;
    }
  }

  async #runningOn(
    host: string,
    options: CallOptions & { readonly type?: string },
  ): Promise<readonly Upid[]> {
    const data = await this.#api.data({
      method: 'GET',
      path: `/nodes/${segment(host)}/tasks`,
      query: { source: 'active', typefilter: options.type, limit: LONGEST_LIST },
      doing: `list the tasks on ${host}`,
      host,
      signal: options.signal,
    });
    return recordsOf(data)
      .filter((entry) => entry['endtime'] === undefined)
      .flatMap((entry) => parseUpid(textOf(entry['upid']) ?? '') ?? []);
  }

  async #logFrom(
    upid: Upid,
    page: CallOptions & { readonly start: number; readonly limit: number },
  ): Promise<{ readonly lines: readonly string[]; readonly total: number | undefined }> {
    const { data, total } = await this.#api.call({
      method: 'GET',
      path: `/nodes/${segment(upid.host)}/tasks/${segment(upid.text)}/log`,
      query: { start: page.start, limit: page.limit },
      doing: `read the log of ${upid.type} on ${upid.host}`,
      host: upid.host,
      facts: { upid: upid.text },
      signal: page.signal,
    });
    return { lines: recordsOf(data).map((line) => textOf(line['t']) ?? ''), total };
  }
}

export function taskStatusOf(upid: Upid, data: unknown): TaskStatus {
  const status = recordOf(data);
  if (status['status'] !== 'stopped') return { state: 'running' };
  const message = textOf(status['exitstatus']) ?? 'ended without an exit status';
  const warnings = /^WARNINGS: (\d+)/.exec(message)?.[1];
  if (message === 'OK' || warnings !== undefined) {
    return { state: 'ended', succeeded: true, warnings: Number(warnings ?? 0), message };
  }
  const failure = translateTaskFailure(message, {
    doing: `${upid.type} ${upid.subject} on ${upid.host}`,
    facts: { upid: upid.text, host: upid.host },
    secrets: [],
  });
  return { state: 'ended', succeeded: false, warnings: 0, message, failure };
}

/** A token sees its own tasks only; after it was replaced, the tasks of the old one are out of sight. */
function isAnothersTask(error: unknown): error is PvescalerError {
  return error instanceof PvescalerError && error.code === 'PERMISSION_MISSING';
}

function hidden(upid: Upid, cause: PvescalerError): NotFound {
  return new NotFound('TASK_NOT_FOUND', `the task belongs to ${upid.owner}`, {
    cause,
    facts: { upid: upid.text },
  });
}
