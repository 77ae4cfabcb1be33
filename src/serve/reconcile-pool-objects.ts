// SPDX-License-Identifier: Apache-2.0
// What the leader does about ProxmoxPool objects: it holds them by a finalizer while they have machines, drains the machines
// of deleted ones, brings pools that no autoscaler manages to their size, and writes the status.
import { isDeepStrictEqual } from 'node:util';
import { fixedSize } from '../config/index.ts';
import type { Fleet, FleetStatus, PassReport, PoolStatus } from '../fleet/index.ts';
import { type Drain, formatBlockers } from '../model/drain.ts';
import { formatCount } from '../model/format-text.ts';
import type { Lease } from '../model/lease.ts';
import type { Machine } from '../model/machine.ts';
import type { Clock } from '../ports/clock.ts';
import type { Cluster } from '../ports/cluster.ts';
import { asPvescalerError, Conflict } from '../ports/errors.ts';
import type { Log } from '../ports/log.ts';
import type { PoolCondition, PoolObject, PoolObjects } from '../ports/pool-objects.ts';
import { isOrphaning, type PoolDefinitions } from './pool-definitions.ts';
import { poolObjectStatus } from './pool-object-status.ts';

export interface PoolReconcilerOptions {
  readonly objects: Pick<PoolObjects, 'all' | 'setHeld' | 'writeStatus'>;
  readonly definitions: PoolDefinitions;
  readonly fleet: Pick<
    Fleet,
    'status' | 'drain' | 'scaleTo' | 'driverLease' | 'view' | 'capacity' | 'forecast'
  >;
  readonly clock: Pick<Clock, 'now'>;
  readonly namespace: string;
  readonly cluster: Pick<Cluster, 'emit'> | undefined;
  readonly regions: readonly string[];
  readonly log: Log;
}

const REQUESTED_BY = 'pool-object';
/** A drain that was undone is requested again after this time. */
const RETRY_DRAIN_MS = 10 * 60_000;
/** The pass in progress may have begun with the settings before. */
const PASSES_UNTIL_APPLIED = 2;

/** What is known at the time of one reconcile. */
interface Reading {
  readonly lease: Lease;
  readonly status: FleetStatus;
  readonly now: number;
}

export class PoolObjectReconciler {
  readonly #options: PoolReconcilerOptions;
  /** Complete passes since the settings without new machines were in use, by uid of the deleted object. */
  readonly #passes = new Map<string, number>();
  readonly #errors = new Map<string, string>();

  constructor(options: PoolReconcilerOptions) {
    this.#options = options;
  }

  /** Call it after each pass of this process. */
  recordPass({ stale, undecided }: PassReport): void {
    const { fleet, regions } = this.#options;
    const isComplete =
      Object.keys(stale).length === 0 &&
      undecided.length === 0 &&
      regions.every((region) => fleet.forecast.isComplete(region));
    for (const [uid, count] of this.#passes) this.#passes.set(uid, isComplete ? count + 1 : 0);
  }

  /** Changes nothing when another process leads. */
  async reconcile(): Promise<void> {
    const { fleet, clock, objects } = this.#options;
    const lease = fleet.driverLease();
    if (lease === undefined) return this.#passes.clear();
    const reading = { lease, status: await fleet.status(), now: clock.now() };
    for (const object of objects.all() ?? []) await this.#reconcileSafely(object, reading);
  }

  /** A conflict is a change that the watch reports; it is reconciled then. */
  async #reconcileSafely(object: PoolObject, reading: Reading): Promise<void> {
    const { log } = this.#options;
    try {
      await this.#reconcileObject(object, reading);
      this.#errors.delete(object.name);
    } catch (cause) {
      const error = asPvescalerError(cause);
      if (error instanceof Conflict || this.#errors.get(object.name) === error.message) return;
      this.#errors.set(object.name, error.message);
      log.warn(`ProxmoxPool ${object.name} was not reconciled`, { error });
    }
  }

  async #reconcileObject(object: PoolObject, reading: Reading): Promise<void> {
    const { objects, definitions } = this.#options;
    const isOfFile = definitions.refusalOf(object)?.reason === 'NameInConfigFile';
    if (object.isTerminating && !object.isHeld) return;
    if (object.isTerminating && (isOrphaning(object) || isOfFile)) {
      return objects.setHeld(object, false);
    }
    if (!definitions.isKnown(object)) return;
    if (this.#mustHold(object)) return objects.setHeld(object, true);
    const machines = isOfFile ? [] : machinesOf(object.name, reading.status);
    if (this.#isProvenEmpty(object, machines)) return objects.setHeld(object, false);
    await this.#removeMachines(object, machines, reading);
    await this.#writeStatus(object, machines, reading);
  }

  async #removeMachines(
    object: PoolObject,
    machines: readonly Machine[],
    reading: Reading,
  ): Promise<void> {
    if (object.isTerminating) return this.#drain(object, machines, reading);
    if (this.#options.definitions.isInUse(object)) await this.#scaleDown(object, reading);
  }

  #mustHold(object: PoolObject): boolean {
    return !object.isHeld && !isOrphaning(object) && this.#options.definitions.isInUse(object);
  }

  /** Whether a deleted pool has no machine, by complete passes that began after it could not grow any more. */
  #isProvenEmpty(object: PoolObject, machines: readonly Machine[]): boolean {
    const { name, uid, isTerminating } = object;
    if (!isTerminating || !this.#options.definitions.isApplied(object)) {
      this.#passes.delete(uid);
      return false;
    }
    const passes = this.#passes.get(uid) ?? 0;
    this.#passes.set(uid, passes);
    const isRequested = this.#openIntents(name).some(({ kind }) => kind === 'create');
    return machines.length === 0 && !isRequested && passes >= PASSES_UNTIL_APPLIED;
  }

  #openIntents(pool: string) {
    const all = this.#options.fleet.view.intents.all();
    return all.filter((intent) => intent.pool === pool && intent.state === 'open');
  }

  async #drain(
    { name }: PoolObject,
    machines: readonly Machine[],
    { lease, status, now }: Reading,
  ): Promise<void> {
    const requested = new Set(this.#openIntents(name).flatMap((intent) => intent.machines));
    const isWaiting = ({ id, phase }: Machine) =>
      phase === 'draining' ||
      phase === 'deleting' ||
      requested.has(id) ||
      status.drains.some((drain) => drain.machine === id && wasUndoneLately(drain, now));
    const ids = machines.filter((one) => !isWaiting(one)).map(({ id }) => ({ id }));
    if (ids.length === 0) return;
    const reason = `ProxmoxPool ${name} was deleted`;
    await this.#options.fleet.drain({ by: REQUESTED_BY, reason, machines: ids, fence: lease });
  }

  async #scaleDown({ name, spec }: PoolObject, reading: Reading): Promise<void> {
    const { lease, status, now } = reading;
    const size = fixedSize(spec);
    const target = status.pools.find((pool) => pool.name === name)?.target ?? 0;
    if (size === undefined || target <= size || this.#openIntents(name).length > 0) return;
    const own = new Set(machinesOf(name, status).map(({ id }) => id));
    const isUndone = (drain: Drain) => own.has(drain.machine) && wasUndoneLately(drain, now);
    if (status.drains.some(isUndone)) return;
    const reason = `spec.replicas of ProxmoxPool ${name} is ${size}`;
    const why = { by: REQUESTED_BY, reason, drain: {}, fence: lease };
    await this.#options.fleet.scaleTo(name, size, why);
  }

  async #writeStatus(
    object: PoolObject,
    machines: readonly Machine[],
    { status, now }: Reading,
  ): Promise<void> {
    const { objects, definitions, fleet } = this.#options;
    const unplaced = fleet.capacity()?.unplaced;
    const next = poolObjectStatus({
      object,
      refusal: definitions.refusalOf(object),
      pool: definitions.isInUse(object) ? poolOf(object, status) : undefined,
      isFixed: fixedSize(object.spec) !== undefined,
      machines: machines.filter(({ phase }) => object.isTerminating || phase !== 'kept').length,
      unplaced: machines
        .filter(({ phase }) => phase === 'requested')
        .flatMap(({ id }) => unplaced?.get(id) ?? [])
        .at(0),
      blockers: machines.flatMap(({ id }) =>
        status.drains.filter(({ machine }) => machine === id).flatMap(describeDrain),
      ),
      now,
    });
    if (isDeepStrictEqual(next, object.status)) return;
    await objects.writeStatus(object, next);
    await this.#emit(object, next.conditions);
  }

  /** An Event for each condition that is another one now. */
  async #emit(object: PoolObject, conditions: readonly PoolCondition[]): Promise<void> {
    const { cluster, namespace } = this.#options;
    const { name, uid } = object;
    for (const { type, status, reason, message } of conditions) {
      const before = object.status?.conditions?.find((each) => each.type === type);
      const isGood = (status === 'True') === (type === 'Ready');
      const isNew = before === undefined ? !isGood : before.status !== status;
      if (status === 'Unknown' || !isNew) continue;
      const regarding = { kind: 'ProxmoxPool', name, namespace, uid } as const;
      const event = { regarding, type: isGood ? 'Normal' : 'Warning', reason, message } as const;
      await cluster?.emit(event).catch(() => undefined);
    }
  }
}

function poolOf({ name }: PoolObject, { pools }: FleetStatus): PoolStatus | undefined {
  return pools.find((pool) => pool.name === name);
}

/** Of which something is left. */
function machinesOf(pool: string, { machines }: FleetStatus): readonly Machine[] {
  return machines.filter(
    (machine) => machine.pool === pool && machine.phase !== 'failed' && machine.phase !== 'gone',
  );
}

function wasUndoneLately({ state, stateSince }: Drain, now: number): boolean {
  return state === 'undoing' || (state === 'undone' && now - stateSince < RETRY_DRAIN_MS);
}

function describeDrain({ nodeName, undo, blockedBy }: Drain): readonly string[] {
  if (undo !== undefined) return [`the drain of node ${nodeName} was undone: ${undo.message}`];
  if (blockedBy.length === 0) return [];
  return [
    `the drain of node ${nodeName} waits for ${formatCount(blockedBy.length, 'object')}: ${formatBlockers(blockedBy)}`,
  ];
}
