// SPDX-License-Identifier: Apache-2.0
// Hosts as a few domains instead of one each. Packing then costs as much for a hundred hosts as for one, which is enough
// where pods do not depend on the host and hosts are not nearly full.

import type { Limits, PlannedMachine } from '../scheduling/index.ts';
import type { HostCapacity, ScalingHost, ScalingInput, ScalingPool } from './input.ts';

export interface MergedHosts {
  /** The domains of a pool, by name. */
  readonly domainsOf: (pool: string) => readonly string[];
  readonly limits: ReadonlyMap<string, Limits>;
  /** Whether a host is left for each of these machines, whichever hosts the others are placed on. */
  readonly isEnoughFor: (machines: readonly Pick<PlannedMachine, 'pool'>[]) => boolean;
}

/**
 * Hosts that the same pools may use are one domain. Each counts with the number of machines that it holds even if all
 * are as large as the largest of these pools: up to that number, a host with enough CPU, memory and disk is left for every
 * machine. Sums of these amounts would not do, since one host may lack CPU and another one memory.
 */
export function mergeHosts({ hosts, pools }: ScalingInput): MergedHosts {
  const byName = new Map(pools.map((pool) => [pool.config.name, pool]));
  const counts = new Map<string, number>();
  for (const host of hosts) {
    const usable = usablePools(host, byName);
    if (usable.length === 0) continue;
    const name = domainName(usable);
    counts.set(name, (counts.get(name) ?? 0) + countSurelyHeld(host, usable));
  }
  const domains = [...counts.keys()];
  return {
    domainsOf: (pool) => domains.filter((name) => poolsOf(name).includes(pool)),
    limits: new Map([...counts].map(([name, machines]) => [name, { machines }])),
    isEnoughFor: (machines) => isEnoughFor(machines, counts),
  };
}

/** For each pool: all machines that may be placed on its hosts may be placed there. */
function isEnoughFor(
  machines: readonly Pick<PlannedMachine, 'pool'>[],
  counts: ReadonlyMap<string, number>,
): boolean {
  const domains = Array.from(counts, ([name, held]) => ({ pools: new Set(poolsOf(name)), held }));
  return [...new Set(machines.map(({ pool }) => pool))].every((pool) => {
    const own = domains.filter(({ pools }) => pools.has(pool));
    const rivals = machines.filter((one) => own.some(({ pools }) => pools.has(one.pool)));
    return rivals.length <= own.reduce((sum, { held }) => sum + held, 0);
  });
}

const SEPARATOR = ' ';
/** Distinguishes the domain from a pool of the same name. */
const PREFIX = '*';

function domainName(pools: readonly ScalingPool[]): string {
  return [PREFIX, ...pools.map(({ config }) => config.name)].join(SEPARATOR);
}

function poolsOf(domain: string): readonly string[] {
  return domain.split(SEPARATOR).slice(1);
}

/** Pools whose machines of every size can start on the host. */
function usablePools(
  { pools }: ScalingHost,
  byName: ReadonlyMap<string, ScalingPool>,
): readonly ScalingPool[] {
  return Object.entries(pools).flatMap(([name, { refusal, maxCpus = Infinity }]) => {
    const pool = byName.get(name);
    if (pool === undefined || refusal !== undefined) return [];
    return largestMachine([pool]).cpus > maxCpus ? [] : [pool];
  });
}

function countSurelyHeld(host: ScalingHost, pools: readonly ScalingPool[]): number {
  const largest = largestMachine(pools);
  const held = (needed: number, amount: (capacity: HostCapacity) => number): number => {
    const least = Math.min(
      ...pools.map(({ config }) => {
        const capacity = host.pools[config.name];
        return capacity === undefined ? 0 : amount(capacity);
      }),
    );
    return needed === 0 ? Infinity : Math.floor(Math.max(0, least) / needed);
  };
  return Math.min(
    held(largest.cpus, ({ cpus }) => cpus),
    held(largest.memoryBytes, ({ memoryBytes }) => memoryBytes),
    held(largest.diskBytes, ({ diskBytes }) => diskBytes),
  );
}

/** The largest amounts of any size of these pools. */
function largestMachine(pools: readonly ScalingPool[]) {
  const sizes = pools.flatMap(({ config }) => {
    const all = config.sizes.kind === 'span' ? [config.sizes.max] : config.sizes.sizes;
    return all.map(({ cpu, memoryBytes, diskBytes }) => ({
      cpu,
      memoryBytes: memoryBytes + config.memoryOverheadBytes,
      diskBytes,
    }));
  });
  return {
    cpus: Math.max(0, ...sizes.map(({ cpu }) => cpu)),
    memoryBytes: Math.max(0, ...sizes.map(({ memoryBytes }) => memoryBytes)),
    diskBytes: Math.max(0, ...sizes.map(({ diskBytes }) => diskBytes)),
  };
}
