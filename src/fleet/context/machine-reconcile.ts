// SPDX-License-Identifier: Apache-2.0
// One machine being reconciled: its record, its VM, and the operations that all phases share.
import type {
  Machine,
  MachineId,
  Phase,
  Placement,
  TaskInProgress,
  TaskKind,
} from '../../model/machine.ts';
import { roleOf } from '../../model/role.ts';
import { Bug, InvalidConfig, PvescalerError, TaskFailed } from '../../ports/errors.ts';
import type { Hypervisor, TaskRef, TaskStatus, VmRef } from '../../ports/hypervisor.ts';
import { DEFER_MS } from '../../ports/store.ts';
import type { MachineChanges } from '../records/records.ts';
import { type TimedField, timeKey } from './driver-state.ts';
import type { JournalNote, ReconcileContext } from './reconcile-context.ts';
import type { PoolSettings, RegionSettings } from './settings.ts';
import { missingSettings, settingsOf } from './vm-settings.ts';

export type TaskOutcome =
  | { readonly state: 'none' }
  /** Return `wait` to poll again when the task may have ended. */
  | { readonly state: 'running'; readonly wait: ReconcileResult }
  | {
      readonly state: 'ended';
      readonly kind: TaskKind;
      /** Only a failure that the handler accepts; `pollTask` throws every other one. */
      readonly failure: PvescalerError | undefined;
      readonly warnings: number;
    };

/** The record said something else than the VM's marker and was corrected: the machine is reconciled from its new phase. */
export class RecordCorrected extends Error {}

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

  /** True before the machine has a region. */
  get isRegionReadable(): boolean {
    const { placement } = this.machine;
    return placement === undefined || this.context.views.has(placement.region);
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

  /** Undefined for a machine whose pool is no longer in the config: it can be deleted, but not created. */
  get pool(): PoolSettings | undefined {
    return settingsOf(this.context.settings, this.machine);
  }

  /** Undefined for a machine of a pool. */
  get role(): string | undefined {
    return roleOf(this.machine.pool);
  }

  requirePool(): PoolSettings {
    const { pool } = this;
    if (pool !== undefined) return pool;
    throw new InvalidConfig(
      'CONFIG_INVALID',
      `${missingSettings(this.machine)} is not in the config`,
    );
  }

  /** For what a driver can find out again: a crash may lose it. */
  update(changes: MachineChanges): Promise<void> {
    return this.context.records.update(this.id, changes, { deferMs: DEFER_MS });
  }

  async move(to: Phase, changes: MachineChanges = {}): Promise<ReconcileResult> {
    await this.context.records.move(this.id, to, changes);
    this.context.state.backoffs.delete(this.id);
    return CONTINUE;
  }

  /** How long drivers have been waiting since that time in the record. */
  elapsedMs(field: TimedField, since: number): number {
    const { state, clock } = this.context;
    return state.timeOf(field).elapsedMs(timeKey(this.id, field), since, clock);
  }

  /**
   * The same without the time up to the last moment at which the cluster could not be read: in that time no machine can
   * get a token or become a Node.
   */
  elapsedWhileJoinableMs(field: TimedField, since: number): number {
    const { state, clock } = this.context;
    const elapsedMs = this.elapsedMs(field, since);
    if (this.pool?.joins !== true) return elapsedMs;
    return Math.min(elapsedMs, clock.monotonic() - state.clusterStaleAt);
  }

  /** Corrects the times from which a driver counts after a change of the wall clock, for the next driver. */
  async correctTimes(): Promise<void> {
    const { state, clock } = this.context;
    const { placedAt, phaseSince, missingSince, task } = this.machine;
    const times: readonly (readonly [TimedField, number | undefined])[] = [
      ['placedAt', placedAt],
      ['phaseSince', phaseSince],
      ['missingSince', missingSince],
      ['task', task?.startedAt],
    ];
    const corrected = new Map<TimedField, number>();
    for (const [field, since] of times) {
      if (since === undefined) continue;
      const at = state.timeOf(field).corrected(timeKey(this.id, field), since, clock);
      if (at !== undefined) corrected.set(field, at);
    }
    if (corrected.size === 0) return;
    const { task: startedAt = 0, ...changes } = Object.fromEntries(corrected);
    const isTaskChanged = task !== undefined && corrected.has('task');
    // Not deferred: a crash would lose what only this driver knows.
    await this.context.records.update(this.id, {
      ...changes,
      ...(isTaskChanged && { task: { ...task, startedAt } }),
    });
    for (const [field, at] of corrected) {
      state.timeOf(field).replaceSince(timeKey(this.id, field), at);
    }
  }

  record(note: Omit<JournalNote, 'subject'>): Promise<void> {
    return this.context.recordMachine(this.machine, note);
  }

  /** Records a task that was started. After a crash before this write, the VM itself shows what the task did. */
  async recordTask(task: TaskRef | undefined): Promise<ReconcileResult> {
    if (task === undefined) return CONTINUE;
    const { upid, kind, host } = task;
    const started = { upid, kind, host, startedAt: this.context.now };
    await this.update({ task: started });
    return this.#waitFor(started);
  }

  /**
   * Status of the task that was started last. It stays in the record until a handler has acted on its end. Throws the
   * failure of a task unless the handler accepts it, so that no failure is repeated without a back-off.
   */
  async pollTask(
    accepts: (failure: PvescalerError, kind: TaskKind) => boolean = () => false,
  ): Promise<TaskOutcome> {
    const { task } = this.machine;
    if (task === undefined) return { state: 'none' };
    const ref = taskRefOf(task, this.placement);
    const status = await this.#readStatus(ref);
    if (status === undefined) return { state: 'none' };
    if (status.state === 'running') {
      if (this.elapsedMs('task', task.startedAt) > this.region.taskTimeoutMs) {
        await this.#recordOverdue(ref);
      }
      return { state: 'running', wait: this.#waitFor(task) };
    }
    const tookMs = this.elapsedMs('task', task.startedAt);
    this.context.state.taskPolling.ended(this.#pollingKey(task), tookMs);
    const failure = failureOf(status);
    if (failure !== undefined && !accepts(failure, ref.kind)) {
      await this.update({ task: undefined });
      throw failure;
    }
    // A start that succeeded is no progress: the guest may power itself off again.
    if (failure === undefined && ref.kind !== 'start') this.context.state.backoffs.delete(this.id);
    return { state: 'ended', kind: ref.kind, failure, warnings: status.warnings };
  }

  #waitFor(task: TaskInProgress): ReconcileResult {
    const afterMs = this.context.state.taskPolling.nextPollMs(
      this.#pollingKey(task),
      this.elapsedMs('task', task.startedAt),
    );
    return requeue(afterMs, `a ${task.kind ?? 'Proxmox'} task is running`);
  }

  #pollingKey({ kind = 'other' }: TaskInProgress): string {
    return `${this.machine.pool} ${kind}`;
  }

  /** Proxmox refuses or queues another task of the VM while this one has its lock, so none is started. */
  #recordOverdue({ upid, host, kind }: TaskRef): Promise<void> {
    const minutes = Math.round(this.region.taskTimeoutMs / 60_000);
    return this.context.recordOnce(this.id, {
      kind: 'failed',
      subject: { pool: this.machine.pool, machine: this.id, host },
      reason: 'TaskOverdue',
      message: `a ${kind} task of VM ${this.vm.vmId} on host ${host} has been running for more than ${minutes} min; nothing is done with the VM before it ends. If it hangs, stop task ${upid} on the host`,
    });
  }

  /** Undefined when Proxmox no longer knows the task: then only the VM shows what it did. */
  async #readStatus(task: TaskRef): Promise<TaskStatus | undefined> {
    try {
      return await this.hypervisor.task(task, this.context.readOptions);
    } catch (error) {
      const isKnown = error instanceof PvescalerError;
      if (isKnown && isTaskOver(this.context, this.placement, { task, error })) return undefined;
      throw error;
    }
  }
}

/** Whether a task has ended that Proxmox says nothing about any more; then only its VM shows what it did. */
export function isTaskOver(
  context: ReconcileContext,
  vm: Pick<Placement, 'region' | 'vmId'>,
  { task: { host }, error }: { readonly task: TaskRef; readonly error: PvescalerError },
): boolean {
  const { code, class: kind } = error;
  if (code === 'TASK_NOT_FOUND') return true;
  // A task ends with its host: the host was removed from its cluster, or it is down and the VM runs elsewhere.
  if (code === 'HOST_NOT_FOUND') {
    const hosts = context.views.get(vm.region)?.hosts ?? [];
    return hosts.length > 0 && hosts.every(({ name }) => name !== host);
  }
  const seen = context.vmInView(vm);
  const isElsewhere = seen !== undefined && seen.host !== host && !seen.isBeingCreated;
  return isElsewhere && (kind === 'Unreachable' || kind === 'TimedOut');
}

/** Records of earlier versions contain neither kind nor host: a task usually runs on the host of its VM. */
export function taskRefOf({ upid, kind = 'other', host }: TaskInProgress, at: Placement): TaskRef {
  return { upid, kind, host: host ?? at.host };
}

function failureOf(status: TaskStatus & { readonly state: 'ended' }): PvescalerError | undefined {
  if (status.succeeded) return undefined;
  return status.failure ?? new TaskFailed('TASK_FAILED', status.message);
}

const INITIAL_BACKOFF_MS = 1_000;
/** After refused calls, failed tasks and restarts. */
export const MAX_BACKOFF_MS = 5 * 60_000;

/** `count`: attempts so far, at least one. */
export function backoffMs(count: number, maxMs = MAX_BACKOFF_MS): number {
  return Math.min(INITIAL_BACKOFF_MS * 2 ** (count - 1), maxMs);
}

// What a phase handler returns: when the machine is reconciled next.

export type ReconcileResult =
  /** Something was done; call the handler of the machine's phase again now. */
  | { readonly next: 'continue' }
  /** Nothing to do until something happens elsewhere; reconcile again after `afterMs`. */
  | { readonly next: 'requeue'; readonly afterMs: number; readonly because: string }
  /** Nothing to do. The next pass adds the machine again if it is not at rest. */
  | { readonly next: 'done' };

export const CONTINUE: ReconcileResult = { next: 'continue' };
export const DONE: ReconcileResult = { next: 'done' };

export function requeue(afterMs: number, because: string): ReconcileResult {
  return { next: 'requeue', afterMs, because };
}
