// SPDX-License-Identifier: Apache-2.0
// What faces ask for. Each call writes one intent and is done; whoever drives carries it out.
import type { Intent } from '../../model/intent.ts';
import type { MachineSize } from '../../model/machine.ts';
import type { MachineId } from '../../model/machine-id.ts';
import type { Clock } from '../../ports/clock.ts';
import { InvalidRequest, NotFound } from '../../ports/errors.ts';
import type { Random } from '../../ports/random.ts';
import { throwIfAborted } from '../../ports/store-gate.ts';
import { inDeletionOrder, type Member } from '../records/members.ts';
import { newMachineId } from '../records/new-machine-id.ts';
import { type PoolLimits, requireHeadroom } from '../records/pool-limits.ts';
import type { RecordCache } from '../records/record-cache.ts';

export interface RequestReason {
  /** Who asks: `cli`, `autoscaler`, `cluster-autoscaler`. */
  readonly by: string;
  /** One sentence. */
  readonly reason: string;
  /** Another size than the pool's own. */
  readonly size?: MachineSize;
  /** Given up before it is durable, it was never asked for. */
  readonly signal?: AbortSignal | undefined;
}

export interface RequestOptions {
  readonly clock: Pick<Clock, 'now'>;
  readonly random: Random;
  readonly pools: Readonly<Record<string, PoolLimits>>;
}

export interface Accepted {
  /** Undefined when there was nothing to ask for. */
  readonly intent: string | undefined;
  readonly machines: readonly MachineId[];
}

const NOTHING: Accepted = { intent: undefined, machines: [] };

/** One call after the other, each knowing what the one before asked for: two together never exceed a maximum. */
export class Requests {
  readonly #options: RequestOptions;
  readonly #mirror: RecordCache;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: RequestOptions, cache: RecordCache) {
    this.#options = options;
    this.#mirror = cache;
  }

  request(name: string, count: number, why: RequestReason): Promise<Accepted> {
    return this.#inTurn(why, () => this.#request(name, count, why));
  }

  /** Also machines of a pool that is no longer in the config, and such that have no record yet. */
  remove(ids: readonly MachineId[], why: RequestReason): Promise<Accepted> {
    return this.#inTurn(why, () => this.#remove(ids, why));
  }

  scaleTo(name: string, size: number, why: RequestReason): Promise<Accepted> {
    return this.#inTurn(why, () => this.#scaleTo(name, size, why));
  }

  cancel(name: string, count: number, why: RequestReason): Promise<Accepted> {
    return this.#inTurn(why, () => this.#cancel(name, count, why));
  }

  async #request(name: string, count: number, why: RequestReason): Promise<Accepted> {
    const pool = this.#pool(name);
    if (!Number.isInteger(count) || count < 0) throw notACount(count);
    if (count === 0) return NOTHING;
    const size = why.size ?? pool.size;
    requireHeadroom(pool, { members: this.#mirror.index.membersOf(name), count, size });
    const { random } = this.#options;
    const machines = Array.from({ length: count }, () => newMachineId(random));
    return this.#write({ ...this.#common(name, why), kind: 'create', machines, size }, why);
  }

  async #remove(ids: readonly MachineId[], why: RequestReason): Promise<Accepted> {
    const { machines, index } = this.#mirror;
    const found = ids.map((id) => ({ id, there: machines.get(id) ?? index.requested(id) }));
    const missing = found.find(({ there }) => there === undefined);
    if (missing !== undefined) throw new NotFound('MACHINE_NOT_FOUND', `no machine ${missing.id}`);
    const pool = found[0]?.there?.pool;
    if (pool === undefined) return NOTHING;
    return this.#write({ ...this.#common(pool, why), kind: 'delete', machines: [...ids] }, why);
  }

  async #scaleTo(name: string, size: number, why: RequestReason): Promise<Accepted> {
    const pool = this.#pool(name);
    if (!Number.isInteger(size) || size < 0) throw notACount(size);
    if (size > pool.limits.max) {
      requireHeadroom(pool, { members: [], count: size, size: why.size ?? pool.size });
    }
    if (size < pool.limits.min) {
      throw new InvalidRequest(
        'REQUEST_INVALID',
        `pool ${name} keeps at least ${pool.limits.min} machines`,
      );
    }
    const members = this.#mirror.index.membersOf(name);
    if (members.length <= size) return this.#request(name, size - members.length, why);
    const machines = inDeletionOrder(members)
      .slice(0, members.length - size)
      .map(({ id }) => id);
    return this.#write({ ...this.#common(name, why), kind: 'delete', machines }, why);
  }

  async #cancel(name: string, count: number, why: RequestReason): Promise<Accepted> {
    this.#pool(name);
    if (!Number.isInteger(count) || count < 0) throw notACount(count);
    const machines = inDeletionOrder(this.#mirror.index.membersOf(name).filter(isNotCreated))
      .slice(0, count)
      .map(({ id }) => id);
    if (machines.length === 0) return NOTHING;
    return this.#write({ ...this.#common(name, why), kind: 'cancel', machines }, why);
  }

  #inTurn<T>({ signal }: RequestReason, work: () => Promise<T>): Promise<T> {
    const context = this.#last.then(async () => {
      throwIfAborted(signal);
      await this.#mirror.refresh();
      return work();
    });
    this.#last = context.catch(() => undefined);
    return context;
  }

  #common(pool: string, { by, reason }: RequestReason) {
    const { clock, random } = this.#options;
    return {
      id: random.uuid(),
      pool,
      requestedAt: clock.now(),
      requestedBy: by,
      reason,
      state: 'open',
    } as const;
  }

  /** The last instant at which a caller that gave up changes nothing is inside the write. */
  async #write(intent: Intent, { signal }: RequestReason): Promise<Accepted> {
    const stated = { ...intent, requestedAt: Math.max(intent.requestedAt, this.#newest(intent)) };
    await this.#mirror.intents.put(intent.id, stated, { signal });
    return { intent: intent.id, machines: intent.machines };
  }

  /** Whoever takes away what was just asked for asked later, whatever the clocks of two processes say. */
  #newest({ machines }: Intent): number {
    const { index } = this.#mirror;
    return Math.max(0, ...machines.map((id) => index.requested(id)?.requestedAt ?? 0));
  }

  #pool(name: string): PoolLimits {
    const pool = this.#options.pools[name];
    if (pool === undefined) throw new NotFound('POOL_NOT_FOUND', `no pool ${name} in the config`);
    return pool;
  }
}

/** Nothing of it is on a host, and nobody is about to make it. */
function isNotCreated({ phase }: Member): boolean {
  return phase === undefined || phase === 'requested' || phase === 'placed';
}

function notACount(count: number): InvalidRequest {
  return new InvalidRequest('REQUEST_INVALID', `${count} is not a number of machines`);
}
