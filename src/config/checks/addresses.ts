// SPDX-License-Identifier: Apache-2.0
// Static address pools: inside their subnet, apart from each other, and large enough for the pool.
import type { ConfigPath } from '../config-path.ts';
import { type Finding, wrong } from '../issues/finding.ts';
import type { ConfigFile, PoolFile } from '../schema/index.ts';
import { quotedKey } from '../secrets/looks-secret.ts';
import { addressRangesOverlap, type Family, parseAddressRange } from '../values/address.ts';
import type { StaticPool } from './static-pool.ts';
import { checkSubnet } from './subnet.ts';

export function checkAddresses(file: ConfigFile): readonly Finding[] {
  const pools = file.pools.map((pool, index) => ({ pool, statics: staticPools(pool, index) }));
  return [
    ...pools.flatMap(({ pool, statics }) =>
      statics.flatMap((fixed) => [
        ...checkFamilies(fixed),
        ...checkSubnet(fixed),
        ...checkCount(pool, fixed),
        ...checkOwnOverlap(fixed),
      ]),
    ),
    ...pools.flatMap((right, index) =>
      pools.slice(0, index).flatMap((left) => checkOverlap(left, right)),
    ),
  ];
}

function staticPools({ network: { ip } }: PoolFile, index: number): readonly StaticPool[] {
  const path = ['pools', index, 'network', 'ip'];
  if (ip === 'dhcp') return [];
  if (!('v4' in ip)) return [staticPool(path, ip, undefined)];
  return [
    ...(typeof ip.v4 === 'string' ? [] : [staticPool([...path, 'v4'], ip.v4, 4)]),
    ...(typeof ip.v6 === 'string' ? [] : [staticPool([...path, 'v6'], ip.v6, 6)]),
  ];
}

type StaticKeys = Extract<PoolFile['network']['ip'], { pool: unknown }>;

function staticPool(
  path: ConfigPath,
  { pool, prefix, gateway }: Pick<StaticKeys, 'pool' | 'prefix' | 'gateway'>,
  expected: Family | undefined,
): StaticPool {
  const ranges = [pool].flat().flatMap((text) => {
    const parsed = parseAddressRange(text);
    return parsed.ok ? [parsed.value] : [];
  });
  return { path, expected, ranges, prefix, gateway };
}

function checkFamilies({ path, expected, ranges }: StaticPool): readonly Finding[] {
  const family = expected ?? ranges[0]?.family;
  return ranges.some((range) => range.family !== family)
    ? [wrong([...path, 'pool'], `must be IPv${family ?? 4} addresses only`)]
    : [];
}

function checkCount(pool: PoolFile, { path, ranges }: StaticPool): readonly Finding[] {
  const count = ranges.reduce((sum, range) => sum + range.count, 0);
  const most = Math.max(pool.limits.max, ...pool.schedules.map(({ max }) => max ?? 0));
  return count < most
    ? [
        wrong(
          [...path, 'pool'],
          `holds ${count} addresses, but the pool may have ${most} machines (limits.max)`,
        ),
      ]
    : [];
}

function checkOwnOverlap({ path, ranges }: StaticPool): readonly Finding[] {
  return ranges.some((range, index) =>
    ranges.slice(0, index).some((other) => addressRangesOverlap(range, other)),
  )
    ? [wrong([...path, 'pool'], 'has ranges that overlap')]
    : [];
}

interface PoolStatics {
  readonly pool: PoolFile;
  readonly statics: readonly StaticPool[];
}

function checkOverlap(left: PoolStatics, right: PoolStatics): readonly Finding[] {
  if (!shareNetwork(left.pool, right.pool)) return [];
  return right.statics.flatMap(({ path, ranges }) => {
    const isTaken = left.statics
      .flatMap((other) => other.ranges)
      .some((other) => ranges.some((range) => addressRangesOverlap(range, other)));
    return isTaken
      ? [
          wrong(
            [...path, 'pool'],
            `has addresses that pool ${quotedKey(left.pool.name)} also gives out`,
          ),
        ]
      : [];
  });
}

/** The same numbers in another VLAN, on another bridge or in another region are other addresses. */
function shareNetwork(left: PoolFile, right: PoolFile): boolean {
  const [one] = left.network.interfaces;
  const [other] = right.network.interfaces;
  const hasCommonRegion = left.regions?.some((region) => right.regions?.includes(region)) ?? false;
  return hasCommonRegion && one?.bridge === other?.bridge && one?.vlan === other?.vlan;
}
