// SPDX-License-Identifier: Apache-2.0
// What the autoscaler remembers, in the records of the pools: it survives a restart and a change of the driver, and
// `pvescaler plan` reads it.
import { isDeepStrictEqual } from 'node:util';
import type { PoolConfig } from '../config/types/index.ts';
import type { Fleet } from '../fleet/index.ts';
import type { MachineId } from '../model/machine.ts';
import type { PoolScaling } from '../model/pool.ts';
import type { Clock } from '../ports/clock.ts';
import { DEFER_MS } from '../ports/store.ts';
import type { ScalingMemory } from '../scaling/index.ts';

/** Without a decision for longer, it is unknown whether a machine was needed meanwhile. */
const MAX_GAP_MS = 3 * 60_000;
/** How old the time of the last decision may be in the records, while the time of a machine counts. */
const CONFIRM_MS = 60_000;

type PoolRecords = Fleet['view']['pools'];

/** For a process that begins to decide. */
export function restoreMemory(pools: PoolRecords, now: number): ScalingMemory {
  return readMemory(pools, ({ at }) => now >= at && now - at <= MAX_GAP_MS);
}

/** What the process that decides remembers. `isCurrent`: whether machines were unneeded until now. */
export function readMemory(
  pools: PoolRecords,
  isCurrent: (scaling: PoolScaling) => boolean = () => true,
): ScalingMemory {
  const known = pools
    .all()
    .flatMap(({ pool, scaling }) => (scaling ? [{ pool, ...scaling }] : []))
    // The newest ones are merged last: records of pools that are no longer in the config are not written any more.
    .toSorted((left, right) => left.at - right.at);
  const trials = merge(known.map((one) => one.trials));
  return {
    unneededSince: merge(known.filter(isCurrent).map((one) => one.unneededSince)),
    // Pods that are not pending any more do not matter.
    assignments: trials,
    trials,
    streaks: Object.fromEntries(known.map(({ pool, streak }) => [pool, streak])),
    replacement: known
      .flatMap(({ replacement }) => replacement ?? [])
      .toSorted((left, right) => right.at - left.at)[0],
    failedRemovals: merge(known.map(({ failedRemovals = {} }) => failedRemovals)),
  };
}

type RememberedPool = Pick<PoolConfig, 'name' | 'scaleDown'>;

interface DurableMemoryOptions {
  readonly fleet: Pick<Fleet, 'view' | 'rememberScaling'>;
  readonly clock: Pick<Clock, 'now'>;
}

export class DurableMemory {
  readonly #fleet: DurableMemoryOptions['fleet'];
  readonly #clock: Pick<Clock, 'now'>;

  constructor({ fleet, clock }: DurableMemoryOptions) {
    this.#fleet = fleet;
    this.#clock = clock;
  }

  restore(): ScalingMemory {
    return restoreMemory(this.#fleet.view.pools, this.#clock.now());
  }

  /**
   * Writes the pools of which something has changed. While the time of an unneeded machine counts, it also confirms now and
   * then that the machine still is. A crash may lose what only makes the next decisions later.
   */
  async save(memory: ScalingMemory, pools: readonly RememberedPool[]): Promise<void> {
    const { index } = this.#fleet.view;
    const at = this.#clock.now();
    for (const { name: pool, scaleDown } of pools) {
      const members = index.membersOf(pool).map(({ id }) => id);
      const ids = [...index.machinesOf(pool).map(({ id }) => id), ...members];
      const scaling = {
        at,
        unneededSince: pick(memory.unneededSince, ids),
        trials: pick(memory.trials ?? {}, ids),
        streak: memory.streaks?.[pool] ?? [],
        ...replacementOf(memory, ids),
        ...failedRemovalsOf(memory),
      };
      const stored = this.#fleet.view.pools.get(pool)?.scaling;
      const change = changeOf(stored, scaling, members);
      if (change !== 'none' || isConfirmationDue(stored, scaling, scaleDown))
        await this.#fleet.rememberScaling(pool, scaling, { deferMs: MAX_LOST_MS[change] });
    }
  }
}

/** Stored with every pool that has one of its machines. */
function replacementOf(
  { replacement }: ScalingMemory,
  machines: readonly MachineId[],
): Pick<PoolScaling, 'replacement'> {
  if (replacement === undefined) return {};
  const involved = new Set([...replacement.replaced, ...replacement.added]);
  return machines.some((id) => involved.has(id)) ? { replacement } : {};
}

/** Stored with every pool: a workload may have pods on machines of any. */
function failedRemovalsOf({
  failedRemovals = {},
}: ScalingMemory): Pick<PoolScaling, 'failedRemovals'> {
  return Object.keys(failedRemovals).length === 0 ? {} : { failedRemovals };
}

function merge<T>(records: readonly Readonly<Record<string, T>>[]): Readonly<Record<string, T>> {
  return Object.fromEntries(records.flatMap((record) => Object.entries(record)));
}

/**
 * `lasting`: without it, the next decisions would be wrong. `later`: without it, times count again, or a machine that
 * helped no pod is not counted.
 */
type Change = 'lasting' | 'later' | 'none';

/** For how long a crash may lose a change. A confirmation only serves the next driver. */
const MAX_LOST_MS: Readonly<Record<Change, number>> = {
  lasting: 0,
  later: DEFER_MS,
  none: Number.POSITIVE_INFINITY,
};

/**
 * What is stored of machines that are being removed does not matter. Values are equal in any order of keys: an API server
 * returns them in another one.
 */
function changeOf(
  stored: PoolScaling | undefined,
  scaling: PoolScaling,
  members: readonly MachineId[],
): Change {
  const { at: _storedAt, unneededSince, trials, ...before } = stored ?? NOTHING;
  const { at: _at, unneededSince: unneededNow, trials: trialsNow, ...now } = scaling;
  const wasNeeded = members.some(
    (id) => unneededSince[id] !== undefined && unneededNow[id] !== unneededSince[id],
  );
  if (wasNeeded || !isDeepStrictEqual(now, before)) return 'lasting';
  const isSame =
    isDeepStrictEqual(pick(unneededNow, members), pick(unneededSince, members)) &&
    isDeepStrictEqual(pick(trialsNow, members), pick(trials, members));
  return isSame ? 'none' : 'later';
}

/** A machine that is kept although its time is over, for example by the minimum of its pool, causes no writes. */
function isConfirmationDue(
  stored: PoolScaling | undefined,
  { at, unneededSince }: PoolScaling,
  { unneededTimeMs }: PoolConfig['scaleDown'],
): boolean {
  const isConfirmed = stored !== undefined && at >= stored.at && at - stored.at < CONFIRM_MS;
  return !isConfirmed && Object.values(unneededSince).some((since) => at - since < unneededTimeMs);
}

type Content = Omit<PoolScaling, 'at'>;

const NOTHING: Content & { readonly at?: number } = { unneededSince: {}, trials: {}, streak: [] };

function pick<T>(values: Readonly<Record<string, T>>, ids: readonly string[]): Record<string, T> {
  return Object.fromEntries(
    ids.flatMap((id) => (values[id] === undefined ? [] : [[id, values[id]] as const])),
  );
}
