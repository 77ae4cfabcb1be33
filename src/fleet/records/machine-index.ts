// SPDX-License-Identifier: Apache-2.0
// Finds machines without scanning all records: by pool, phase, VM, address, name, provider id and Node. It also knows which
// machines have an open create or delete request. RecordCache updates it with every change of a record.
import { heldAddressesOf } from '../../model/held-addresses.ts';
import {
  type CreateIntent,
  type Intent,
  isVmIntent,
  type MachineIntent,
} from '../../model/intent.ts';
import { type Machine, type MachineId, mayHaveVm, type Phase } from '../../model/machine.ts';
import { canonicalAddress, vmIdHoldOf } from '../../placement/index.ts';
import { listMembers, type Member } from '../../pools/index.ts';

export class MachineIndex {
  readonly #byPool = new MultiMap<Machine>();
  readonly #byPhase = new MultiMap<Machine>();
  readonly #byVm = new MultiMap<Machine>();
  readonly #byAddress = new MultiMap<Machine>();
  /** Machines with static addresses, by region. */
  readonly #withAddresses = new MultiMap<Machine>();
  /** By the VM's and the Node's name, lower case. */
  readonly #byName = new MultiMap<Machine>();
  readonly #byProviderId = new MultiMap<Machine>();
  readonly #byNodeUid = new MultiMap<Machine>();
  readonly #openIntentsByPool = new MultiMap<Intent>();
  #openIntents = 0;
  /** Number of open intents that delete or cancel the machine. */
  readonly #deletions = new Map<string, number>();
  /** Number of open intents that drain the machine. */
  readonly #drains = new Map<string, number>();
  readonly #creations = new Map<string, CreateIntent>();
  readonly #versions = new Map<string, number>();
  readonly #members = new Map<string, { version: number; members: readonly Member[] }>();
  readonly #find: (id: string) => Machine | undefined;

  constructor(find: (id: string) => Machine | undefined) {
    this.#find = find;
  }

  /** Increases whenever a machine or an intent of the pool changes; use it to invalidate derived values. */
  version(pool: string): number {
    return this.#versions.get(pool) ?? 0;
  }

  /** Includes machines that are gone or failed and whose records are still kept; no selftest machines. */
  machinesOf(pool: string): readonly Machine[] {
    return this.#byPool.get(pool);
  }

  inPhase(...phases: readonly Phase[]): readonly Machine[] {
    const [only] = phases;
    if (phases.length === 1 && only !== undefined) return this.#byPhase.get(only);
    return phases.flatMap((phase) => this.#byPhase.get(phase));
  }

  /** Returns the same array until something of the pool changes. */
  membersOf(pool: string): readonly Member[] {
    const version = this.version(pool);
    const known = this.#members.get(pool);
    if (known?.version === version) return known.members;
    const members = this.#listMembers(pool);
    this.#members.set(pool, { version, members });
    return members;
  }

  #listMembers(pool: string): readonly Member[] {
    const unrecorded = this.#openIntentsByPool
      .get(pool)
      .filter((intent) => intent.kind === 'create')
      .filter(({ isSelftest }) => isSelftest !== true)
      .flatMap(({ machines, requestedAt, size }) =>
        machines.map((id) => ({ id, requestedAt, size })),
      )
      .filter(({ id }) => this.#find(id) === undefined);
    const isDeletionRequested =
      this.#deletions.size + this.#drains.size === 0
        ? () => false
        : (id: MachineId) => this.isDeletionRequested(id);
    return listMembers(unrecorded, this.#byPool.get(pool), isDeletionRequested);
  }

  /** The open create intent of a machine that has no record yet. */
  requested(id: MachineId): CreateIntent | undefined {
    return this.#find(id) === undefined ? this.#creations.get(id) : undefined;
  }

  /** Whether an open intent deletes, drains or cancels the machine. */
  isDeletionRequested(id: MachineId): boolean {
    return this.#deletions.has(id) || this.#drains.has(id);
  }

  /** The members, and the machines being drained, which may become members again: what limits are compared with. */
  limitedMembersOf(pool: string): readonly Member[] {
    return [...this.membersOf(pool), ...this.drainingOf(pool)];
  }

  /** Machines that are being drained or are about to be. */
  drainingOf(pool: string): readonly Machine[] {
    const isDraining = ({ id, phase }: Machine) =>
      phase === 'draining' || (phase === 'ready' && this.#drains.has(id));
    return this.#byPool.get(pool).filter(isDraining);
  }

  get hasOpenIntents(): boolean {
    return this.#openIntents > 0;
  }

  openIntentsOf(pool: string): readonly Intent[] {
    return this.#openIntentsByPool.get(pool);
  }

  /** The machine that holds this VM id. Several records may name an id, because ids are reused over time. */
  byVm(region: string, vmId: number): Machine | undefined {
    return currentOf(this.#byVm.get(vmKey(region, vmId)));
  }

  byName(name: string): Machine | undefined {
    return currentOf(this.#byName.get(name.toLowerCase()));
  }

  byProviderId(providerId: string): Machine | undefined {
    return currentOf(this.#byProviderId.get(providerId));
  }

  /** Every machine whose record names this Node. */
  byNodeUid(nodeUid: string): readonly Machine[] {
    return this.#byNodeUid.get(nodeUid);
  }

  /** Whether a machine other than `except`, neither gone nor failed, has this name. */
  isNameHeld(name: string, except: string): boolean {
    return this.#byName
      .get(name.toLowerCase())
      .some(({ id, phase }) => id !== except && phase !== 'gone' && phase !== 'failed');
  }

  /** Whether a machine has this VM id now, or had it less than the cool-down ago. */
  isVmIdHeld(region: string, vmId: number, now: number): boolean {
    const machines = this.#byVm.get(vmKey(region, vmId));
    return machines.some((machine) => vmIdHoldOf(machine, now) !== undefined);
  }

  /** Whether a machine that may exist on a host has this VM id. */
  isVmClaimed(region: string, vmId: number): boolean {
    return this.#byVm.get(vmKey(region, vmId)).some(({ phase }) => mayHaveVm(phase));
  }

  /** Machines of the region with static addresses, also those that are gone or failed. */
  withAddresses(region: string): readonly Machine[] {
    return this.#withAddresses.get(region);
  }

  /** A machine other than `except` that has this address now. `address`: in any notation, with or without prefix length. */
  otherHolder(region: string, address: string, except: string | undefined): Machine | undefined {
    return this.#byAddress
      .get(addressKey(region, address))
      .find((one) => one.id !== except && heldAddressesOf(one).releasedAt === undefined);
  }

  machineChanged(before: Machine | undefined, after: Machine | undefined): void {
    if (before !== undefined) this.#remove(before);
    if (after !== undefined) this.#add(after);
  }

  intentChanged(before: Intent | undefined, after: Intent | undefined): void {
    if (before?.state === 'open') this.#countIntent(before, -1);
    if (after?.state === 'open') this.#countIntent(after, 1);
  }

  #add(machine: Machine): void {
    for (const [map, key] of this.#keysOf(machine)) map.add(key, machine.id, machine);
    this.#increaseVersion(machine.pool);
  }

  #remove(machine: Machine): void {
    for (const [map, key] of this.#keysOf(machine)) map.remove(key, machine.id);
    this.#increaseVersion(machine.pool);
  }

  #keysOf(machine: Machine): readonly (readonly [MultiMap<Machine>, string])[] {
    const { pool, phase, placement, nodeName, nodeUid, providerId } = machine;
    const keys: [MultiMap<Machine>, string][] = [[this.#byPhase, phase]];
    if (machine.isSelftest !== true) keys.push([this.#byPool, pool]);
    if (placement !== undefined) {
      keys.push([this.#byVm, vmKey(placement.region, placement.vmId)]);
      keys.push([this.#byName, placement.name.toLowerCase()]);
      for (const address of placement.addresses)
        keys.push([this.#byAddress, addressKey(placement.region, address)]);
      if (placement.addresses.length > 0) keys.push([this.#withAddresses, placement.region]);
    }
    if (nodeName !== undefined) keys.push([this.#byName, nodeName.toLowerCase()]);
    if (nodeUid !== undefined) keys.push([this.#byNodeUid, nodeUid]);
    if (providerId !== undefined) keys.push([this.#byProviderId, providerId]);
    return keys;
  }

  #countIntent(intent: Intent, step: 1 | -1): void {
    if (step === 1) this.#openIntentsByPool.add(intent.pool, intent.id, intent);
    else this.#openIntentsByPool.remove(intent.pool, intent.id);
    this.#openIntents += step;
    this.#increaseVersion(intent.pool);
    if (isVmIntent(intent) || intent.kind === 'resume') return;
    for (const id of intent.machines) this.#countMachine(intent, id, step);
  }

  #countMachine(intent: MachineIntent, id: MachineId, step: 1 | -1): void {
    if (intent.kind === 'create') {
      if (step === 1) this.#creations.set(id, intent);
      else this.#creations.delete(id);
      return;
    }
    if (intent.kind === 'cancel-drain') return;
    const counts = intent.kind === 'drain' ? this.#drains : this.#deletions;
    const count = (counts.get(id) ?? 0) + step;
    if (count > 0) counts.set(id, count);
    else counts.delete(id);
    const pool = (this.#find(id) ?? this.#creations.get(id))?.pool;
    if (pool !== undefined && pool !== intent.pool) this.#increaseVersion(pool);
  }

  #increaseVersion(pool: string): void {
    this.#versions.set(pool, this.version(pool) + 1);
  }
}

/** The machine that may exist, otherwise the one requested last. */
function currentOf(machines: readonly Machine[]): Machine | undefined {
  if (machines.length <= 1) return machines[0];
  return (
    machines.find(({ phase }) => mayHaveVm(phase)) ??
    machines.toSorted((a, b) => b.requestedAt - a.requestedAt)[0]
  );
}

function vmKey(region: string, vmId: number): string {
  return `${region}/${vmId}`;
}

/** The addresses of an adopted VM are written as its configuration has them. */
function addressKey(region: string, address: string): string {
  return `${region}/${canonicalAddress(address)}`;
}

/** Values grouped by a key that several values may share. */
class MultiMap<T> {
  readonly #groups = new Map<string, Map<string, T>>();
  readonly #lists = new Map<string, readonly T[]>();

  add(key: string, id: string, value: T): void {
    const group = this.#groups.get(key) ?? new Map<string, T>();
    group.set(id, value);
    this.#groups.set(key, group);
    this.#lists.delete(key);
  }

  remove(key: string, id: string): void {
    const group = this.#groups.get(key);
    group?.delete(id);
    if (group?.size === 0) this.#groups.delete(key);
    this.#lists.delete(key);
  }

  /** Returns the same array until the group changes. */
  get(key: string): readonly T[] {
    const group = this.#groups.get(key);
    if (group === undefined) return [];
    const list = this.#lists.get(key) ?? [...group.values()];
    this.#lists.set(key, list);
    return list;
  }
}
