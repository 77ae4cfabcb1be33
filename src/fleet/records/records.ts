// SPDX-License-Identifier: Apache-2.0
// The records as the driver reads and writes them. Every write carries the lease as its fence, so that the store refuses
// writes of a former driver. Other processes write intents only; theirs are visible after `refresh`.
import type { Drain } from '../../model/drain.ts';
import type { Intent } from '../../model/intent.ts';
import type { Lease } from '../../model/lease.ts';
import {
  enteredPhase,
  type Machine,
  type MachineFailure,
  type MachineId,
  type Phase,
  parseMachineId,
  type TaskInProgress,
  transitionMachine,
} from '../../model/machine.ts';
import type { PoolState } from '../../model/pool.ts';
import type { Member } from '../../pools/index.ts';
import { Bug } from '../../ports/errors.ts';
import type { Random } from '../../ports/random.ts';
import { DEFER_MS, type WriteOptions } from '../../ports/store.ts';
import type { MachineIndex } from './machine-index.ts';
import type { RecordCache } from './record-cache.ts';
import type { UsageIndex } from './usage-index.ts';

/** What can change without a change of phase. `undefined` removes the value. */
export type MachineChanges = Partial<
  Omit<
    Machine,
    | 'id'
    | 'phase'
    | 'task'
    | 'seedVolume'
    | 'failure'
    | 'deletionReason'
    | 'missingSince'
    | 'isVmLeft'
  >
> & {
  readonly failure?: MachineFailure | undefined;
  readonly deletionReason?: string | undefined;
  readonly task?: TaskInProgress | undefined;
  readonly seedVolume?: string | undefined;
  readonly missingSince?: number | undefined;
  readonly isVmLeft?: boolean | undefined;
};

/**
 * For how long a crash may lose the record of a phase: the machine is then in an earlier one, from which the driver looks its
 * VM up again. `creating` is recorded at once, before the VM exists. Other processes wait for `ready`: until then its seed is
 * usually removed, which is recorded with it.
 */
const PHASE_DEFER_MS: Partial<Record<Phase, number>> = {
  placed: DEFER_MS,
  configuring: DEFER_MS,
  starting: DEFER_MS,
  booting: DEFER_MS,
  joining: DEFER_MS,
  ready: 3_000,
};

type Deferral = Pick<WriteOptions, 'deferMs'>;

export class Records {
  readonly #cache: RecordCache;
  readonly #fence: { readonly fence: Lease };
  readonly #now: () => number;

  private constructor(cache: RecordCache, fence: Lease, now: () => number) {
    this.#cache = cache;
    this.#fence = { fence };
    this.#now = now;
  }

  static async open(cache: RecordCache, fence: Lease, now: () => number): Promise<Records> {
    await cache.refresh();
    return new Records(cache, fence, now);
  }

  /** Reads what other processes requested meanwhile; call it before a step that cannot be cancelled. */
  refresh(): Promise<void> {
    return this.#cache.refresh();
  }

  get machines(): readonly Machine[] {
    return this.#cache.machines.all();
  }

  get requestedHere(): ReadonlySet<string> {
    return this.#cache.requestedHere;
  }

  get drains(): readonly Drain[] {
    return this.#cache.drains.all();
  }

  /** The current drain of the machine, or its last one. */
  drain(id: MachineId): Drain | undefined {
    return this.#cache.drains.get(id);
  }

  putDrain(drain: Drain, options: Deferral = {}): Promise<void> {
    return this.#cache.drains.put(drain.machine, drain, { ...this.#fence, ...options });
  }

  /** Deferrable: a record that is left is removed later. */
  removeDrain(id: MachineId): Promise<void> {
    return this.#cache.drains.remove(id, { ...this.#fence, deferMs: DEFER_MS });
  }

  get intents(): readonly Intent[] {
    return this.#cache.intents.all();
  }

  get index(): Omit<MachineIndex, 'machineChanged' | 'intentChanged'> {
    return this.#cache.index;
  }

  get usage(): Omit<UsageIndex, 'machineChanged'> {
    return this.#cache.usage;
  }

  membersOf(pool: string): readonly Member[] {
    return this.#cache.index.membersOf(pool);
  }

  /** The members, and the machines being drained, which may become members again: what limits are compared with. */
  limitedMembersOf(pool: string): readonly Member[] {
    return this.#cache.index.limitedMembersOf(pool);
  }

  /** Whether an open intent deletes, drains or cancels the machine. */
  isDeletionRequested(id: MachineId): boolean {
    return this.#cache.index.isDeletionRequested(id);
  }

  find(id: MachineId): Machine | undefined {
    return this.#cache.machines.get(id);
  }

  machine(id: MachineId): Machine {
    const machine = this.#cache.machines.get(id);
    if (machine === undefined) throw new Bug('BUG', `machine ${id} has no record`);
    return machine;
  }

  pool(name: string): PoolState {
    return this.#cache.pools.get(name) ?? { pool: name, allocatable: {} };
  }

  /**
   * Applies changes one after the other, because machines of one pool are reconciled concurrently. A change that
   * returns undefined writes nothing.
   */
  changePool(name: string, change: (state: PoolState) => PoolState | undefined): Promise<void> {
    return this.#cache.runPoolChange(async () => {
      const state = change(this.pool(name));
      if (state !== undefined) await this.#cache.pools.put(name, state, this.#fence);
    });
  }

  putIntent(intent: Intent, options: Deferral = {}): Promise<void> {
    return this.#cache.intents.put(intent.id, intent, { ...this.#fence, ...options });
  }

  removeIntent(id: string): Promise<void> {
    return this.#cache.intents.remove(id, this.#fence);
  }

  putMachine(machine: Machine, options: Deferral = {}): Promise<void> {
    return this.#cache.machines.put(machine.id, machine, { ...this.#fence, ...options });
  }

  update(id: MachineId, changes: MachineChanges, options?: Deferral): Promise<void> {
    return this.putMachine(changed(this.machine(id), changes), options);
  }

  /** Removes the task unless `changes` names one: a task belongs to the phase that started it. */
  async move(id: MachineId, to: Phase, changes: MachineChanges = {}): Promise<void> {
    const next = transitionMachine(this.machine(id), to, this.#now());
    if (!next.ok) throw new Bug('BUG', next.problem);
    const deferMs = PHASE_DEFER_MS[to] ?? 0;
    await this.putMachine(changed(next.value, { task: undefined, ...changes }), { deferMs });
  }

  /** Sets the phase that the VM itself proves, whichever transition that is. */
  correctPhase(id: MachineId, phase: Phase, changes: MachineChanges): Promise<void> {
    const machine = this.machine(id);
    const corrected = { ...machine, ...enteredPhase(machine, phase, this.#now()) };
    return this.putMachine(changed(corrected, { task: undefined, failure: undefined, ...changes }));
  }

  /** Deferrable: a record that is left is removed later. */
  removeMachine(id: MachineId): Promise<void> {
    return this.#cache.machines.remove(id, { ...this.#fence, deferMs: DEFER_MS });
  }
}

function changed(machine: Machine, changes: MachineChanges): Machine {
  const { task, seedVolume, failure, deletionReason, missingSince, isVmLeft, ...rest } = {
    ...machine,
    ...changes,
  };
  return {
    ...rest,
    ...(task !== undefined && { task }),
    ...(seedVolume !== undefined && { seedVolume }),
    ...(failure !== undefined && { failure }),
    ...(deletionReason !== undefined && { deletionReason }),
    ...(missingSince !== undefined && { missingSince }),
    ...(isVmLeft !== undefined && { isVmLeft }),
  };
}

export function newMachineId(random: Random): MachineId {
  const id = parseMachineId(random.uuid());
  if (!id.ok) throw new Bug('BUG', `Random gave a uuid that ${id.problem}`);
  return id.value;
}
