// SPDX-License-Identifier: Apache-2.0
// What faces ask for. Each call writes one intent and is done; whoever drives carries it out.
import type { Intent } from '../model/intent.ts';
import type { MachineSize } from '../model/machine.ts';
import type { MachineId } from '../model/machine-id.ts';
import { InvalidRequest, NoCapacity, NotFound } from '../ports/errors.ts';
import { firstToGo, membersOf } from './members.ts';
import { machineIdFrom } from './new-id.ts';
import type { FleetOptions } from './options.ts';
import type { PoolSettings } from './settings.ts';

export interface Why {
  /** Who asks: `cli`, `autoscaler`, `cluster-autoscaler`. */
  readonly by: string;
  /** One sentence. */
  readonly reason: string;
  /** Another size than the pool's own. */
  readonly size?: MachineSize;
}

export interface Asked {
  /** Undefined when there was nothing to ask for. */
  readonly intent: string | undefined;
  readonly machines: readonly MachineId[];
}

const NOTHING: Asked = { intent: undefined, machines: [] };

export class Requests {
  readonly #options: FleetOptions;

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  async request(name: string, count: number, why: Why): Promise<Asked> {
    const pool = this.#pool(name);
    if (!Number.isInteger(count) || count < 0) throw notACount(count);
    if (count === 0) return NOTHING;
    const members = await this.#members(name);
    if (members.length + count > pool.limits.max) throw tooMany(pool, members.length + count);
    const { random } = this.#options;
    const machines = Array.from({ length: count }, () => machineIdFrom(random));
    return this.#write({
      ...this.#common(name, why),
      kind: 'create',
      machines,
      size: why.size ?? pool.size,
    });
  }

  /** Also machines of a pool that is no longer in the config. */
  async remove(ids: readonly MachineId[], why: Why): Promise<Asked> {
    const records = await this.#options.store.machines.list();
    const found = records.filter(({ value }) => ids.includes(value.id)).map(({ value }) => value);
    const missing = ids.find((id) => !found.some((machine) => machine.id === id));
    if (missing !== undefined) throw new NotFound('MACHINE_NOT_FOUND', `no machine ${missing}`);
    const [first] = found;
    if (first === undefined) return NOTHING;
    return this.#write({ ...this.#common(first.pool, why), kind: 'delete', machines: [...ids] });
  }

  async scaleTo(name: string, size: number, why: Why): Promise<Asked> {
    const pool = this.#pool(name);
    if (!Number.isInteger(size) || size < 0) throw notACount(size);
    if (size > pool.limits.max) throw tooMany(pool, size);
    if (size < pool.limits.min) {
      throw new InvalidRequest(
        'REQUEST_INVALID',
        `pool ${name} keeps at least ${pool.limits.min} machines`,
      );
    }
    const members = await this.#members(name);
    if (members.length <= size) return this.request(name, size - members.length, why);
    const machines = firstToGo(members)
      .slice(0, members.length - size)
      .map(({ id }) => id);
    return this.#write({ ...this.#common(name, why), kind: 'delete', machines });
  }

  async #members(pool: string) {
    const { store } = this.#options;
    const intents = await store.intents.list();
    const machines = await store.machines.list();
    return membersOf(pool, {
      intents: intents.map(({ value }) => value),
      machines: machines.map(({ value }) => value),
    });
  }

  #common(pool: string, { by, reason }: Why) {
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

  async #write(intent: Intent): Promise<Asked> {
    await this.#options.store.intents.create(intent.id, intent);
    return { intent: intent.id, machines: intent.machines };
  }

  #pool(name: string): PoolSettings {
    const pool = this.#options.settings.pools[name];
    if (pool === undefined) throw new NotFound('POOL_NOT_FOUND', `no pool ${name} in the config`);
    return pool;
  }
}

function notACount(count: number): InvalidRequest {
  return new InvalidRequest('REQUEST_INVALID', `${count} is not a number of machines`);
}

function tooMany(pool: PoolSettings, wanted: number): NoCapacity {
  return new NoCapacity(
    'POOL_AT_MAXIMUM',
    `pool ${pool.name} may have ${pool.limits.max} machines, not ${wanted}`,
    { facts: { wanted, max: pool.limits.max } },
  );
}
