// SPDX-License-Identifier: Apache-2.0
// The state of MemoryHypervisor: VMs, volumes and tasks of one region.
import type { Host } from '../../model/host.ts';
import type { TaskKind } from '../../model/machine.ts';
import { NotFound, PvescalerError } from '../errors.ts';
import type { ContainerSummary, RunningTask, TaskRef, TaskStatus, Volume } from '../hypervisor.ts';

export interface MemoryVm {
  readonly vmId: number;
  host: string;
  /** The options as Proxmox stores them, including name and lock. */
  readonly options: Map<string, string>;
  revision: number;
  /** Monotonic; undefined while the VM is stopped. */
  startedAt: number | undefined;
}

export interface MemoryVolume extends Volume {
  readonly storage: string;
  /** Undefined if the storage is shared. */
  readonly host: string | undefined;
  readonly data?: Uint8Array;
  readonly checksum?: string;
}

interface MemoryTask extends RunningTask {
  readonly endsAt: number;
  readonly taskLog: string[];
  /** Throws a PvescalerError if the task fails. */
  readonly finish: () => void;
  readonly undo: () => void;
  end: (TaskStatus & { readonly state: 'ended' }) | undefined;
}

export interface TaskOrder extends Omit<RunningTask, 'upid'> {
  readonly durationMs: number;
  finish(): void;
  /** Called when the task fails. */
  undo?(): void;
}

export class MemoryRegion {
  readonly hosts: Host[];
  readonly vms = new Map<number, MemoryVm>();
  readonly containers: ContainerSummary[] = [];
  readonly volumes = new Map<string, MemoryVolume>();
  /** Bytes of a storage that look free in the view but cannot be used, by name. */
  readonly reservedBytes = new Map<string, number>();
  readonly #tasks = new Map<string, MemoryTask>();
  readonly #plannedFailures = new Map<TaskKind, PvescalerError[]>();
  #taskCount = 0;

  constructor(hosts: readonly Host[]) {
    this.hosts = [...hosts];
  }

  storageSpace(hostName: string): ReadonlyMap<string, number> {
    const storages = this.hosts.find(({ name }) => name === hostName)?.storages ?? [];
    return new Map(
      storages
        .filter(({ active, content }) => active && content.includes('images'))
        .map(({ name, freeBytes }) => [name, freeBytes - (this.reservedBytes.get(name) ?? 0)]),
    );
  }

  failNextTask(kind: TaskKind, failure: PvescalerError): void {
    this.#plannedFailures.set(kind, [...(this.#plannedFailures.get(kind) ?? []), failure]);
  }

  startTask(order: TaskOrder, now: number): TaskRef {
    this.#taskCount += 1;
    const { kind, host, subject } = order;
    const upid = `task-${this.#taskCount}`;
    const planned = this.#plannedFailures.get(kind)?.shift();
    this.#tasks.set(upid, {
      upid,
      kind,
      host,
      subject,
      endsAt: now + order.durationMs,
      taskLog: [`${kind} ${subject ?? ''}`],
      finish: () => {
        if (planned !== undefined) throw planned;
        order.finish();
      },
      undo: () => order.undo?.(),
      end: undefined,
    });
    return { upid, kind, host };
  }

  /** Ends all due tasks in the order of their end times. */
  finishDueTasks(now: number): void {
    const due = [...this.#tasks.values()]
      .filter((task) => task.end === undefined && task.endsAt <= now)
      .sort((a, b) => a.endsAt - b.endsAt);
    for (const task of due) {
      const end = finishTask(task);
      task.end = end;
      task.taskLog.push(`TASK ${end.message}`);
    }
  }

  taskStatus(task: TaskRef): TaskStatus {
    return this.#requireTask(task).end ?? { state: 'running' };
  }

  log(task: TaskRef, lines: number): readonly string[] {
    return this.#requireTask(task).taskLog.slice(-lines);
  }

  runningTasks(host: string, kind: TaskKind): readonly RunningTask[] {
    return [...this.#tasks.values()]
      .filter((task) => task.end === undefined && task.host === host && task.kind === kind)
      .map(({ upid, subject }) => ({ upid, kind, host, subject }));
  }

  /** Removes all task records, as Proxmox does after a while. */
  forgetTasks(): void {
    this.#tasks.clear();
  }

  #requireTask(task: TaskRef): MemoryTask {
    const found = this.#tasks.get(task.upid);
    if (found === undefined) {
      throw new NotFound('TASK_NOT_FOUND', `task ${task.upid} does not exist`, {
        facts: { upid: task.upid },
      });
    }
    return found;
  }
}

function finishTask(task: MemoryTask): TaskStatus & { readonly state: 'ended' } {
  try {
    task.finish();
    return { state: 'ended', succeeded: true, warnings: 0, message: 'OK' };
  } catch (error) {
    // Any other error is a bug of the fake.
    if (!(error instanceof PvescalerError)) throw error;
    task.undo();
    const { message } = error;
    return { state: 'ended', succeeded: false, warnings: 0, message, failure: error };
  }
}
