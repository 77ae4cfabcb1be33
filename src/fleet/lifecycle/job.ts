// SPDX-License-Identifier: Apache-2.0
// One machine in one round: its record, its VM, and the few moves every phase is made of.
import type { Machine, Phase, Placement, TaskUnderWay } from '../../model/machine.ts';
import type { MachineId } from '../../model/machine-id.ts';
import { Bug, PvescalerError, TaskFailed } from '../../ports/errors.ts';
import type { Hypervisor, TaskRef, TaskStatus, VmRef } from '../../ports/hypervisor.ts';
import type { Changes } from '../books.ts';
import type { PoolSettings, RegionSettings } from '../settings.ts';
import type { Telling, Turn } from '../turn.ts';
import { taskHostOf, taskTypeOf } from '../upid.ts';
import { isBeingMade } from './being-made.ts';
import type { Tempoed } from './tempo.ts';

/** `again`: something was done, go on at once. `wait`: nothing to do until something happens elsewhere. */
export type Step = 'again' | 'wait';

export type TaskSeen =
  | { readonly state: 'none' }
  | { readonly state: 'running' }
  | {
      readonly state: 'ended';
      readonly type: string;
      readonly failure: PvescalerError | undefined;
      readonly warnings: number;
    };

export class Job {
  readonly turn: Turn;
  readonly id: MachineId;

  constructor(turn: Turn, id: MachineId) {
    this.turn = turn;
    this.id = id;
  }

  get machine(): Machine {
    return this.turn.books.machine(this.id);
  }

  get placement(): Placement {
    const { placement } = this.machine;
    if (placement === undefined) throw new Bug('BUG', `machine ${this.id} has no placement`);
    return placement;
  }

  get vm(): VmRef {
    const { vmId, host } = this.placement;
    return { vmId, host };
  }

  get hypervisor(): Hypervisor {
    return this.turn.hypervisor(this.placement.region);
  }

  get region(): RegionSettings {
    return this.turn.region(this.placement.region);
  }

  /** Undefined for a machine whose pool is no longer in the config: it can be deleted, not made. */
  get pool(): PoolSettings | undefined {
    return this.turn.pool(this.machine.pool);
  }

  update(changes: Changes): Promise<void> {
    return this.turn.books.update(this.id, changes);
  }

  async move(to: Phase, changes: Changes = {}): Promise<Step> {
    await this.turn.books.move(this.id, to, changes);
    this.turn.memory.pauses.delete(this.id);
    return 'again';
  }

  tell(telling: Omit<Telling, 'subject'>): Promise<void> {
    return this.turn.tellOf(this.machine, telling);
  }

  /** Writes down a task that was started. A crash before that is found out by looking at the VM. */
  async started(task: TaskRef | undefined): Promise<Step> {
    if (task === undefined) return 'again';
    await this.update({ task: { upid: task.upid, startedAt: this.turn.now } });
    return 'wait';
  }

  /** How the task that was started last is doing. It stays in the record until a handler has acted on its end. */
  async task(): Promise<TaskSeen> {
    const { task } = this.machine;
    if (task === undefined) return { state: 'none' };
    const { tempo } = this.turn.memory;
    const asked = tempoOf(this.machine, task);
    if (!tempo.isDue(asked, this.turn.now)) return { state: 'running' };
    const status = await this.#status(task.upid);
    tempo.answered(asked, status?.state ?? 'unknown', this.turn.now);
    if (status === undefined) return { state: 'none' };
    if (status.state === 'running') {
      const isOverdue = this.turn.now - task.startedAt > this.region.taskTimeoutMs;
      return isOverdue && this.machine.phase === 'deleting'
        ? { state: 'none' }
        : { state: 'running' };
    }
    const { warnings } = status;
    return { state: 'ended', type: taskTypeOf(task.upid), failure: failureOf(status), warnings };
  }

  /** Undefined when nobody knows the task any more: only the VM can tell then. */
  async #status(upid: string): Promise<TaskStatus | undefined> {
    try {
      return await this.hypervisor.task({ upid }, this.turn.reading);
    } catch (error) {
      if (error instanceof PvescalerError && this.#isOver(upid, error)) return undefined;
      throw error;
    }
  }

  /** A task ends with its host: one that was taken out of its cluster, or that the VM has left while it was down. */
  #isOver(upid: string, { code, class: kind }: PvescalerError): boolean {
    if (code === 'TASK_NOT_FOUND') return true;
    const host = taskHostOf(upid);
    if (code === 'HOST_NOT_FOUND') {
      const hosts = this.turn.views.get(this.placement.region)?.hosts ?? [];
      return hosts.length > 0 && hosts.every(({ name }) => name !== host);
    }
    const seen = this.turn.seen(this.placement);
    const isElsewhere = seen !== undefined && seen.host !== host && !isBeingMade(seen);
    return isElsewhere && (kind === 'Unreachable' || kind === 'TimedOut');
  }
}

export function tempoOf({ id, pool }: Machine, { upid, startedAt }: TaskUnderWay): Tempoed {
  return { of: id, upid, kind: `${pool} ${taskTypeOf(upid)}`, startedAt };
}

function failureOf(status: TaskStatus & { readonly state: 'ended' }): PvescalerError | undefined {
  if (status.succeeded) return undefined;
  return status.failure ?? new TaskFailed('TASK_FAILED', status.message);
}
