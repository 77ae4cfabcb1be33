// SPDX-License-Identifier: Apache-2.0
// Texts of create steps and of refusals, with the numbers behind them.

import { formatCount } from '../model/format-text.ts';
import type { MachineSize } from '../model/machine.ts';
import { type Pod, podKey } from '../model/pod.ts';
import {
  formatReason,
  type LimitHit,
  type PoolRefusal,
  type UnplacedPod,
} from '../scheduling/index.ts';
import type { Facts, PodName, Refusal, RefusalCode } from './plan.ts';
import { NO_HOST, type PoolState } from './pool-offers.ts';

const GIB = 2 ** 30;
const MIB = 2 ** 20;

/** Rounded up: what is needed never looks like what is free. */
export function neededBytes(bytes: number): string {
  return formatBinary(bytes, Math.ceil);
}

/** Rounded down. */
export function freeBytes(bytes: number): string {
  return formatBinary(Math.max(0, bytes), Math.floor);
}

function formatBinary(bytes: number, round: (value: number) => number): string {
  const [unit, name] = bytes >= GIB ? [GIB, 'GiB'] : [MIB, 'MiB'];
  return `${round((bytes * 10) / unit) / 10} ${name}`;
}

export function describeSize({ cpu, memoryBytes }: MachineSize): string {
  return `${formatCount(cpu, 'vCPU')}, ${neededBytes(memoryBytes)}`;
}

export function describePods(pods: readonly Pod[]): string {
  const [first] = pods;
  if (first === undefined) return 'no pod';
  if (pods.length === 1) return `pod ${podKey(first)}`;
  return `${pods.length} pods, such as ${podKey(first)}`;
}

/** The part of a refusal that concerns one pool, host or limit. */
export interface Cause {
  readonly subject: Refusal['subject'];
  readonly code: RefusalCode;
  readonly reason: string;
  readonly facts: Facts;
}

/** Why the pool adds no machine, although one would help. */
export function limitCause(
  { pool, domain }: Pick<PoolRefusal, 'pool' | 'domain'>,
  limit: LimitHit,
  state: PoolState | undefined,
): Cause {
  if (state?.exclusion !== undefined) {
    const { code, reason, facts } = state.exclusion;
    return { subject: { kind: 'pool', name: pool }, code, reason, facts };
  }
  if (limit.of === pool) return poolLimitCause(pool, limit, state);
  if (domain === NO_HOST)
    return {
      subject: { kind: 'pool', name: pool },
      code: 'PoolWithoutHost',
      reason: `pool ${pool} refused: ${state?.withoutHost ?? 'it has no host'}`,
      facts: {},
    };
  return hostCause(pool, domain, limit);
}

const NO_ROOM = { code: 'PoolAtLimit', reason: '' } as const;

function poolLimitCause(pool: string, limit: LimitHit, state: PoolState | undefined): Cause {
  const subject = { kind: 'pool' as const, name: pool };
  const left = limit.allowed - limit.used;
  if (limit.limit === 'machines') {
    // Nothing else allows less than the limits of the pool.
    const isBatchFull = state !== undefined && limit.allowed < state.room.machines;
    const { code, reason } = (isBatchFull ? state.batch : state?.room) ?? NO_ROOM;
    return { subject, code, reason, facts: { left, adding: limit.adding } };
  }
  const { cpu, memoryBytes } = state?.pool.config.limits ?? { cpu: 0, memoryBytes: 0 };
  const reason =
    limit.limit === 'cpu'
      ? `pool ${pool} refused: needs ${formatCount(limit.adding / 1_000, 'vCPU')}, ${left / 1_000} left of its limit of ${cpu}`
      : `pool ${pool} refused: needs ${neededBytes(limit.adding)}, ${freeBytes(left)} left of its limit of ${neededBytes(memoryBytes)}`;
  return {
    subject,
    code: 'PoolAtLimit',
    reason,
    facts: { limit: limit.limit, left, adding: limit.adding },
  };
}

function hostCause(pool: string, domain: string, limit: LimitHit): Cause {
  const host = domain.split('/').slice(1).join('/');
  const left = limit.allowed - limit.used;
  return {
    subject: { kind: 'host', name: domain },
    code: 'HostFull',
    reason: `pool ${pool} refused: host ${host} ${describeShortfall(limit, left)}`,
    facts: { pool, limit: limit.limit, free: left, needed: limit.adding },
  };
}

function describeShortfall({ limit, adding }: LimitHit, left: number): string {
  switch (limit) {
    case 'cpu':
      return `needs ${formatCount(adding / 1_000, 'vCPU')}, ${Math.max(0, left / 1_000)} free`;
    case 'memory':
      return `needs ${neededBytes(adding)}, ${freeBytes(left)} free after reserve`;
    case 'disk':
      return `needs ${neededBytes(adding)} of disk, ${freeBytes(left)} free`;
    case 'machines':
      return 'has no capacity left beside machines of other pools';
  }
}

/** How many clauses a reason has at most. */
const MAX_CLAUSES = 6;

export interface UnplacedReason {
  readonly code: RefusalCode;
  readonly reason: string;
  /** Limits that would have to change. */
  readonly causes: readonly Cause[];
}

/** Why no pool runs a pod: one clause per pool, and per host where hosts differ. */
export function describeUnplaced(
  refusals: UnplacedPod['refusals'],
  states: ReadonlyMap<string, PoolState>,
): UnplacedReason {
  const causes: Cause[] = [];
  const clauses: string[] = [];
  for (const refusal of refusals) {
    const { pool, reasons, limit } = refusal;
    if (reasons.length > 0) {
      // Several filters may object to the same claim.
      clauses.push(`pool ${pool}: ${[...new Set(reasons.map(formatReason))].join(', ')}`);
    } else if (limit !== undefined) {
      const cause = limitCause(refusal, limit, states.get(pool));
      causes.push(cause);
      clauses.push(cause.reason);
    } else {
      clauses.push(`pool ${pool}: its pods would be spread unevenly`);
    }
  }
  const unique = [...new Set(clauses)];
  const shown = unique.slice(0, MAX_CLAUSES);
  const more = unique.length - shown.length;
  const text = shown.length === 0 ? 'there is no pool' : shown.join('; ');
  return {
    code: unplacedCode(causes),
    reason: more === 0 ? text : `${text}; and ${more} more`,
    causes,
  };
}

function unplacedCode(causes: readonly Cause[]): RefusalCode {
  if (causes.length === 0) return 'PodFitsNoPool';
  return causes.some(({ code }) => code === 'PoolBatchFull')
    ? 'PodWaitsForBatch'
    : 'PodWaitsForLimit';
}

export function nameOf({ namespace, name, uid }: Pod): PodName {
  return { namespace, name, uid };
}
