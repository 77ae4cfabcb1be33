// SPDX-License-Identifier: Apache-2.0
// One machine in one round: its record, its VM, and the few moves every phase is made of.
import type { Machine, Phase, Placement, TaskUnderWay } from '../../model/machine.ts';
import type { MachineId } from '../../model/machine-id.ts';
import { Bug, PvescalerError, TaskFailed } from '../../ports/errors.ts';
import type { Hypervisor, TaskRef, TaskStatus, VmRef } from '../../ports/hypervisor.ts';
import type { MachineChanges } from '../records/records.ts';
import { isBeingCreated } from './being-created.ts';
import type { JournalNote, ReconcileContext } from './reconcile-context.ts';
import type { PoolSettings, RegionSettings } from './settings.ts';
import type { Tempoed } from './task-polling.ts';
import { taskHostOf, taskTypeOf } from './upid.ts';

/** `again`: something was done, go on at once. `wait`: nothing to do until something happens elsewhere. */
export type Step = 'again' | 'wait';

export type TaskOutcome =
  | { readonly state: 'none' }
  | { readonly state: 'running' }
  | {
      readonly state: 'ended';
      readonly type: string;
      readonly failure: PvescalerError | undefined;
      readonly warnings: number;
    };

export class MachineReconcile {
  readonly context: ReconcileContext;
  readonly id: MachineId;

  constructor(context: ReconcileContext, id: MachineId) {
    this.context = context;
    this.id = id;
  }

  get machine(): Machine {
    return this.context.records.machine(this.id);
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
    return this.context.hypervisor(this.placement.region);
  }

  get region(): RegionSettings {
    return this.context.region(this.placement.region);
  }

  /** Undefined for a machine whose pool is no longer in the config: it can be deleted, not made. */
  get pool(): PoolSettings | undefined {
    return this.context.pool(this.machine.pool);
  }

  update(changes: MachineChanges): Promise<void> {
    return this.context.records.update(this.id, changes);
  }

  async move(to: Phase, changes: MachineChanges = {}): Promise<Step> {
    await this.context.records.move(this.id, to, changes);
    this.context.state.backoffs.delete(this.id);
    return 'again';
  }

  record(telling: Omit<JournalNote, 'subject'>): Promise<void> {
    return this.context.recordMachine(this.machine, telling);
  }

  /** Writes down a task that was started. A crash before that is found out by looking at the VM. */
  async recordTask(task: TaskRef | undefined): Promise<Step> {
    if (task === undefined) return 'again';
    await this.update({ task: { upid: task.upid, startedAt: this.context.now } });
    return 'wait';
  }

  /** How the task that was started last is doing. It stays in the record until a handler has acted on its end. */
  async pollTask(): Promise<TaskOutcome> {
    const { task } = this.machine;
    if (task === undefined) return { state: 'none' };
    const { taskPolling } = this.context.state;
    const asked = tempoOf(this.machine, task);
    if (!taskPolling.isDue(asked, this.context.now)) return { state: 'running' };
    const status = await this.#status(task.upid);
    taskPolling.answered(asked, status?.state ?? 'unknown', this.context.now);
    if (status === undefined) return { state: 'none' };
    if (status.state === 'running') {
      const isOverdue = this.context.now - task.startedAt > this.region.taskTimeoutMs;
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
      return await this.hypervisor.task({ upid }, this.context.readOptions);
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
      const hosts = this.context.views.get(this.placement.region)?.hosts ?? [];
      return hosts.length > 0 && hosts.every(({ name }) => name !== host);
    }
    const seen = this.context.vmInView(this.placement);
    const isElsewhere = seen !== undefined && seen.host !== host && !isBeingCreated(seen);
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
