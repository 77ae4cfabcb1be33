// SPDX-License-Identifier: Apache-2.0
// The limits of a pool: machines, vCPUs and memory.
import type { PoolConfig } from '../config/types/index.ts';
import {
  countsTowardsTarget,
  type Machine,
  type MachineId,
  type MachineSize,
  type Phase,
} from '../model/machine.ts';

import { humanBytes } from '../model/quantity.ts';

/** Limits of cpu and memoryBytes are sums over all machines; 0 = no limit. */
export type PoolLimits = Pick<PoolConfig, 'name' | 'limits' | 'size' | 'nodeGroups'>;

export interface GrowthRequest {
  readonly members: readonly Member[];
  readonly count: number;
  readonly size: MachineSize;
}

export interface LimitRefusal {
  readonly message: string;
  /** In the unit of the exceeded limit: machines, vCPUs or bytes. */
  readonly requested: number;
  readonly max: number;
}

/** How many of the requested machines the limits allow in addition to the members. */
export function countAllowed(
  { limits }: PoolLimits,
  { members, count, size }: GrowthRequest,
): number {
  const allowedBy = (limit: number, amount: (size: MachineSize) => number) => {
    const used = members.reduce((sum, member) => sum + amount(member.size), 0);
    return limit === 0 ? count : Math.floor((limit - used) / amount(size));
  };
  const allowed = Math.min(
    count,
    limits.max - members.length,
    allowedBy(limits.cpu, ({ cpu }) => cpu),
    allowedBy(limits.memoryBytes, ({ memoryBytes }) => memoryBytes),
  );
  return Math.max(0, allowed);
}

/** How many machines of the default size the limits allow. */
export function maxMachines({ limits, size }: PoolLimits): number {
  const { max, cpu, memoryBytes } = limits;
  return Math.min(
    max,
    cpu === 0 ? max : Math.floor(cpu / size.cpu),
    memoryBytes === 0 ? max : Math.floor(memoryBytes / size.memoryBytes),
  );
}

/** Undefined when the limits allow the whole request. */
export function checkLimits(pool: PoolLimits, request: GrowthRequest): LimitRefusal | undefined {
  if (request.count <= 0 || countAllowed(pool, request) === request.count) return undefined;
  return refuse(pool, request);
}

function refuse(
  { name, limits }: PoolLimits,
  { members, count, size }: GrowthRequest,
): LimitRefusal {
  const sum = (amount: (size: MachineSize) => number) =>
    members.reduce((total, member) => total + amount(member.size), count * amount(size));
  const machines = members.length + count;
  const cpu = sum((one) => one.cpu);
  const memoryBytes = sum((one) => one.memoryBytes);
  if (machines > limits.max) {
    const message = `pool ${name} is limited to ${limits.max} machines, not ${machines}`;
    return { message, requested: machines, max: limits.max };
  }
  if (limits.cpu > 0 && cpu > limits.cpu) {
    const message = `pool ${name} is limited to ${limits.cpu} vCPUs; ${machines} machines would have ${cpu}`;
    return { message, requested: cpu, max: limits.cpu };
  }
  const message = `pool ${name} is limited to ${humanBytes(limits.memoryBytes)} of memory; ${machines} machines would have ${humanBytes(memoryBytes)}`;
  return { message, requested: memoryBytes, max: limits.memoryBytes };
}

// The members of a pool: machines that exist or are being provisioned, plus requested ones without a record yet, minus
// those whose deletion was requested.

export interface Member {
  readonly id: MachineId;
  /** Undefined while it has no record. */
  readonly phase: Phase | undefined;
  readonly requestedAt: number;
  readonly placedAt?: number | undefined;
  readonly size: MachineSize;
}

type RequestedMember = Omit<Member, 'phase'>;

/** Returns recorded machines as they are: this runs after each change of a pool of a thousand, so it copies none. */
export function listMembers(
  requested: readonly RequestedMember[],
  machines: readonly Machine[],
  isDeletionRequested: (id: MachineId) => boolean,
): readonly Member[] {
  const recorded = machines.filter(
    ({ id, phase }) => countsTowardsTarget(phase) && !isDeletionRequested(id),
  );
  const unrecorded = requested
    .filter(({ id }) => !isDeletionRequested(id))
    .map((member) => ({ ...member, phase: undefined }));
  return [...unrecorded, ...recorded];
}
