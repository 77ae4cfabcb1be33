// SPDX-License-Identifier: Apache-2.0
// Static address pools: inside their subnet, without overlaps, and large enough for the pool.
import type { ConfigPath } from '../config-path.ts';
import { errorAt, type Finding } from '../issues/finding.ts';
import type { ConfigFile, PoolFile } from '../schema/index.ts';
import { quoteKey } from '../secrets/detect-secret.ts';
import { addressRangesOverlap, type IpFamily, parseAddressRange } from '../values/ip-address.ts';
import { checkSubnet, type StaticAddressPool } from './subnet.ts';

export function checkAddresses(file: ConfigFile): readonly Finding[] {
  const pools = file.pools.map((pool, index) => ({
    pool,
    addressPools: findStaticPools(pool, index),
  }));
  return [
    ...pools.flatMap(({ pool, addressPools }) =>
      addressPools.flatMap((addressPool) => [
        ...checkFamilies(addressPool),
        ...checkSubnet(addressPool),
        ...checkCount(pool, addressPool),
        ...checkOverlapWithinPool(addressPool),
      ]),
    ),
    ...pools.flatMap((right, index) =>
      pools.slice(0, index).flatMap((left) => checkOverlapBetweenPools(left, right)),
    ),
  ];
}

function findStaticPools(
  { network: { ip } }: PoolFile,
  index: number,
): readonly StaticAddressPool[] {
  const path = ['pools', index, 'network', 'ip'];
  if (ip === 'dhcp') return [];
  if (!('v4' in ip)) return [toStaticPool(path, ip, undefined)];
  return [
    ...(typeof ip.v4 === 'string' ? [] : [toStaticPool([...path, 'v4'], ip.v4, 4)]),
    ...(typeof ip.v6 === 'string' ? [] : [toStaticPool([...path, 'v6'], ip.v6, 6)]),
  ];
}

type StaticKeys = Extract<PoolFile['network']['ip'], { pool: unknown }>;

function toStaticPool(
  path: ConfigPath,
  { pool, prefix, gateway }: Pick<StaticKeys, 'pool' | 'prefix' | 'gateway'>,
  expected: IpFamily | undefined,
): StaticAddressPool {
  const ranges = [pool].flat().flatMap((text) => {
    const parsed = parseAddressRange(text);
    return parsed.ok ? [parsed.value] : [];
  });
  return { path, expected, ranges, prefix, gateway };
}

function checkFamilies({ path, expected, ranges }: StaticAddressPool): readonly Finding[] {
  const family = expected ?? ranges[0]?.family;
  return ranges.some((range) => range.family !== family)
    ? [errorAt([...path, 'pool'], `must contain only IPv${family ?? 4} addresses`)]
    : [];
}

function checkCount(pool: PoolFile, { path, ranges }: StaticAddressPool): readonly Finding[] {
  const count = ranges.reduce((sum, range) => sum + range.count, 0);
  const maxMachines = Math.max(pool.limits.max, ...pool.schedules.map(({ max }) => max ?? 0));
  return count < maxMachines
    ? [
        errorAt(
          [...path, 'pool'],
          `has ${count} addresses, but the pool may have ${maxMachines} machines (limits.max)`,
        ),
      ]
    : [];
}

function checkOverlapWithinPool({ path, ranges }: StaticAddressPool): readonly Finding[] {
  return ranges.some((range, index) =>
    ranges.slice(0, index).some((other) => addressRangesOverlap(range, other)),
  )
    ? [errorAt([...path, 'pool'], 'contains ranges that overlap')]
    : [];
}

interface PoolAddresses {
  readonly pool: PoolFile;
  readonly addressPools: readonly StaticAddressPool[];
}

function checkOverlapBetweenPools(left: PoolAddresses, right: PoolAddresses): readonly Finding[] {
  if (!isSameNetwork(left.pool, right.pool)) return [];
  return right.addressPools.flatMap(({ path, ranges }) => {
    const isTaken = left.addressPools
      .flatMap((other) => other.ranges)
      .some((other) => ranges.some((range) => addressRangesOverlap(range, other)));
    return isTaken
      ? [
          errorAt(
            [...path, 'pool'],
            `contains addresses that pool ${quoteKey(left.pool.name)} also uses`,
          ),
        ]
      : [];
  });
}

/** The same addresses in another VLAN, on another bridge or in another region do not conflict. */
function isSameNetwork(left: PoolFile, right: PoolFile): boolean {
  const [one] = left.network.interfaces;
  const [other] = right.network.interfaces;
  const hasCommonRegion = left.regions?.some((region) => right.regions?.includes(region)) ?? false;
  return hasCommonRegion && one?.bridge === other?.bridge && one?.vlan === other?.vlan;
}
