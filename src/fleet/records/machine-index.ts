// SPDX-License-Identifier: Apache-2.0
// Finds machines without looking at all of them: by pool, by VM, by the names Kubernetes has for them; and knows
// which of them somebody asked for and which somebody asked to take away. Kept in step by the mirror.
import type { CreateIntent, Intent } from '../../model/intent.ts';
import { type Machine, mayExist } from '../../model/machine.ts';
import type { MachineId } from '../../model/machine-id.ts';
import { type Member, membersFrom } from './members.ts';
import { MultiMap } from './multi-map.ts';

export class MachineIndex {
  readonly #byPool = new MultiMap<Machine>();
  readonly #byVm = new MultiMap<Machine>();
  readonly #byName = new MultiMap<Machine>();
  readonly #byProviderId = new MultiMap<Machine>();
  readonly #openByPool = new MultiMap<Intent>();
  /** How many open intents want each of them away. */
  readonly #leaving = new Map<string, number>();
  readonly #coming = new Map<string, CreateIntent>();
  readonly #versions = new Map<string, number>();
  readonly #members = new Map<string, { version: number; members: readonly Member[] }>();
  readonly #find: (id: string) => Machine | undefined;

  constructor(find: (id: string) => Machine | undefined) {
    this.#find = find;
  }

  /** Changes whenever something of the pool does: what was worked out from it may be kept until then. */
  version(pool: string): number {
    return this.#versions.get(pool) ?? 0;
  }

  /** Those whose records are kept although they are over, too. */
  machinesOf(pool: string): readonly Machine[] {
    return this.#byPool.get(pool);
  }

  /** The same array until something of the pool changes. */
  membersOf(pool: string): readonly Member[] {
    const version = this.version(pool);
    const known = this.#members.get(pool);
    if (known?.version === version) return known.members;
    const members = this.#countMembers(pool);
    this.#members.set(pool, { version, members });
    return members;
  }

  #countMembers(pool: string): readonly Member[] {
    const coming = this.#openByPool
      .get(pool)
      .filter((intent) => intent.kind === 'create')
      .flatMap(({ machines, requestedAt, size }) =>
        machines.map((id) => ({ id, requestedAt, size })),
      )
      .filter(({ id }) => this.#find(id) === undefined);
    const isLeaving =
      this.#leaving.size === 0 ? () => false : (id: MachineId) => this.#leaving.has(id);
    return membersFrom(coming, this.#byPool.get(pool), isLeaving);
  }

  /** Asked for and without a record. */
  requested(id: MachineId): CreateIntent | undefined {
    return this.#find(id) === undefined ? this.#coming.get(id) : undefined;
  }

  /** Whether somebody asked to take it away and nobody has begun. */
  isDeletionRequested(id: MachineId): boolean {
    return this.#leaving.has(id);
  }

  openIntentsOf(pool: string): readonly Intent[] {
    return this.#openByPool.get(pool);
  }

  /** The one that holds this VM id; several records may name it, since ids come round again. */
  byVm(region: string, vmId: number): Machine | undefined {
    const all = this.#byVm.get(`${region}/${vmId}`);
    return all.find(({ phase }) => mayExist(phase)) ?? newest(all);
  }

  byName(name: string): Machine | undefined {
    const all = this.#byName.get(name);
    return all.find(({ phase }) => mayExist(phase)) ?? newest(all);
  }

  byProviderId(providerId: string): Machine | undefined {
    const all = this.#byProviderId.get(providerId);
    return all.find(({ phase }) => mayExist(phase)) ?? newest(all);
  }

  machineChanged(before: Machine | undefined, after: Machine | undefined): void {
    if (before !== undefined) this.#forget(before);
    if (after !== undefined) this.#note(after);
  }

  intentChanged(before: Intent | undefined, after: Intent | undefined): void {
    if (before?.state === 'open') this.#count(before, -1);
    if (after?.state === 'open') this.#count(after, 1);
  }

  #note(machine: Machine): void {
    const { id, pool, placement, nodeName, providerId } = machine;
    this.#byPool.add(pool, id, machine);
    if (placement !== undefined) {
      this.#byVm.add(`${placement.region}/${placement.vmId}`, id, machine);
      this.#byName.add(placement.name, id, machine);
    }
    if (nodeName !== undefined) this.#byName.add(nodeName, id, machine);
    if (providerId !== undefined) this.#byProviderId.add(providerId, id, machine);
    this.#bump(pool);
  }

  #forget({ id, pool, placement, nodeName, providerId }: Machine): void {
    this.#byPool.remove(pool, id);
    if (placement !== undefined) {
      this.#byVm.remove(`${placement.region}/${placement.vmId}`, id);
      this.#byName.remove(placement.name, id);
    }
    if (nodeName !== undefined) this.#byName.remove(nodeName, id);
    if (providerId !== undefined) this.#byProviderId.remove(providerId, id);
    this.#bump(pool);
  }

  #count(intent: Intent, step: 1 | -1): void {
    if (step === 1) this.#openByPool.add(intent.pool, intent.id, intent);
    else this.#openByPool.remove(intent.pool, intent.id);
    this.#bump(intent.pool);
    for (const id of intent.machines) this.#countMachine(intent, id, step);
  }

  #countMachine(intent: Intent, id: MachineId, step: 1 | -1): void {
    if (intent.kind === 'create') {
      if (step === 1) this.#coming.set(id, intent);
      else this.#coming.delete(id);
      return;
    }
    const count = (this.#leaving.get(id) ?? 0) + step;
    if (count > 0) this.#leaving.set(id, count);
    else this.#leaving.delete(id);
    const pool = (this.#find(id) ?? this.#coming.get(id))?.pool;
    if (pool !== undefined && pool !== intent.pool) this.#bump(pool);
  }

  #bump(pool: string): void {
    this.#versions.set(pool, this.version(pool) + 1);
  }
}

function newest(machines: readonly Machine[]): Machine | undefined {
  return machines.toSorted((a, b) => b.requestedAt - a.requestedAt)[0];
}
