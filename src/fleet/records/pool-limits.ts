// SPDX-License-Identifier: Apache-2.0
// What a pool may have of machines, of vCPUs and of memory.
import type { MachineSize } from '../../model/machine.ts';
import { humanBytes } from '../../model/quantity.ts';
import { NoCapacity } from '../../ports/errors.ts';
import type { Member } from './members.ts';

/** What of a pool's settings decides about orders. */
export interface PoolLimits {
  readonly name: string;
  readonly size: MachineSize;
  readonly limits: {
    readonly max: number;
    readonly min: number;
    /** Sum over all machines; 0 = no limit. */
    readonly cpu: number;
    readonly memoryBytes: number;
  };
}

interface SizeRequest {
  readonly members: readonly Member[];
  readonly count: number;
  readonly size: MachineSize;
}

/** How many of the wished ones the pool may have beside its members. */
export function headroom({ limits }: PoolLimits, { members, count, size }: SizeRequest): number {
  const left = (limit: number, each: (size: MachineSize) => number) => {
    const used = members.reduce((sum, member) => sum + each(member.size), 0);
    return limit === 0 ? count : Math.floor((limit - used) / each(size));
  };
  const room = Math.min(
    count,
    limits.max - members.length,
    left(limits.cpu, ({ cpu }) => cpu),
    left(limits.memoryBytes, ({ memoryBytes }) => memoryBytes),
  );
  return Math.max(0, room);
}

/** Refuses what is beyond the pool's limits, with the one it is beyond. */
export function requireHeadroom(pool: PoolLimits, wish: SizeRequest): void {
  const beyond = limitError(pool, wish);
  if (beyond !== undefined) throw beyond;
}

/** Undefined for what the limits allow. */
export function limitError(pool: PoolLimits, wish: SizeRequest): NoCapacity | undefined {
  if (wish.count <= 0 || headroom(pool, wish) === wish.count) return undefined;
  return beyondWhich(pool, wish);
}

function beyondWhich(
  { name, limits }: PoolLimits,
  { members, count, size }: SizeRequest,
): NoCapacity {
  const sum = (each: (size: MachineSize) => number) =>
    members.reduce((total, member) => total + each(member.size), count * each(size));
  const wanted = members.length + count;
  const cpu = sum((one) => one.cpu);
  const memoryBytes = sum((one) => one.memoryBytes);
  if (wanted > limits.max) {
    return tooMuch(name, `${limits.max} machines, not ${wanted}`, { wanted, max: limits.max });
  }
  if (limits.cpu > 0 && cpu > limits.cpu) {
    const words = `${limits.cpu} vCPUs; ${wanted} machines would have ${cpu}`;
    return tooMuch(name, words, { wanted: cpu, max: limits.cpu });
  }
  const words = `${humanBytes(limits.memoryBytes)} of memory; ${wanted} machines would have ${humanBytes(memoryBytes)}`;
  return tooMuch(name, words, { wanted: memoryBytes, max: limits.memoryBytes });
}

function tooMuch(pool: string, words: string, facts: Readonly<Record<string, number>>): NoCapacity {
  return new NoCapacity('POOL_AT_MAXIMUM', `pool ${pool} may have ${words}`, { facts });
}
