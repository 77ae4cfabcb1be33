// SPDX-License-Identifier: Apache-2.0
// Hosts as a few domains instead of one each. Packing then costs as much for a hundred hosts as for one, which is enough
// where pods do not depend on the host and hosts are not nearly full.

import type { Limits } from '../scheduling/index.ts';
import type { HostCapacity, ScalingHost, ScalingInput, ScalingPool } from './input.ts';

export interface MergedHosts {
  /** The domains of a pool, by name. */
  readonly domainsOf: (pool: string) => readonly string[];
  readonly limits: ReadonlyMap<string, Limits>;
}

/**
 * Hosts that the same pools may use are one domain. Each counts with what it has for the strictest of these pools, less
 * the largest machine: as long as the sum is not exceeded, a host with enough space is left for every machine, in
 * whatever order they are placed.
 */
export function mergeHosts({ hosts, pools }: ScalingInput): MergedHosts {
  const byName = new Map(pools.map((pool) => [pool.config.name, pool]));
  const limits = new Map<string, Required<Omit<Limits, 'machines'>>>();
  for (const host of hosts) {
    const usable = usablePools(host, byName);
    if (usable.length === 0) continue;
    const name = domainName(usable);
    const known = limits.get(name) ?? { cpuMilli: 0, memoryBytes: 0, diskBytes: 0 };
    const left = surelyFree(host, usable);
    limits.set(name, {
      cpuMilli: known.cpuMilli + left.cpuMilli,
      memoryBytes: known.memoryBytes + left.memoryBytes,
      diskBytes: known.diskBytes + left.diskBytes,
    });
  }
  return {
    domainsOf: (pool) => [...limits.keys()].filter((name) => poolsOf(name).includes(pool)),
    limits,
  };
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

function surelyFree(host: ScalingHost, pools: readonly ScalingPool[]) {
  const largest = largestMachine(pools);
  const least = (amount: (capacity: HostCapacity) => number): number =>
    Math.min(
      ...pools.map(({ config }) => {
        const capacity = host.pools[config.name];
        return capacity === undefined ? 0 : amount(capacity);
      }),
    );
  return {
    cpuMilli: Math.max(0, least(({ cpus }) => cpus) - largest.cpus) * 1_000,
    memoryBytes: Math.max(0, least(({ memoryBytes }) => memoryBytes) - largest.memoryBytes),
    diskBytes: Math.max(0, least(({ diskBytes }) => diskBytes) - largest.diskBytes),
  };
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
