// SPDX-License-Identifier: Apache-2.0
// A static pool, its gateway and its prefix length belong together.
import { errorAt, type Finding } from '../issues/finding.ts';
import {
  type AddressRange,
  type IpAddress,
  PREFIX_MAX,
  parseIpAddress,
  rangeContains,
  subnetOf,
} from '../values/ip-address.ts';
import type { StaticAddressPool } from './static-pool.ts';

/** Wider than any network a machine stands in: a mistyped prefix. */
const MIN_PREFIX = { 4: 8, 6: 32 } as const;

export function checkSubnet(fixed: StaticAddressPool): readonly Finding[] {
  const [range] = fixed.ranges;
  const first = range === undefined ? undefined : parseIpAddress(range.from);
  if (first?.ok !== true) return [];
  const prefix = findPrefixProblem(fixed.prefix, first.value);
  if (prefix !== undefined) return [errorAt([...fixed.path, 'prefix'], prefix)];
  return [...checkRanges(fixed, first.value), ...checkGateway(fixed, first.value)];
}

function findPrefixProblem(prefix: number, { family }: IpAddress): string | undefined {
  if (prefix > PREFIX_MAX[family]) return `must be at most ${PREFIX_MAX[family]} for IPv${family}`;
  return prefix < MIN_PREFIX[family]
    ? `is too short for a subnet; write the prefix length of the subnet, such as ${family === 4 ? 24 : 64}`
    : undefined;
}

function checkRanges(fixed: StaticAddressPool, first: IpAddress): readonly Finding[] {
  const subnet = subnetOf(first, fixed.prefix);
  const path = [...fixed.path, 'pool'];
  const isInside = fixed.ranges.every((range) => {
    const last = parseIpAddress(range.to);
    const start = parseIpAddress(range.from);
    return (
      last.ok && start.ok && last.value.value <= subnet.last && start.value.value >= subnet.first
    );
  });
  if (!isInside)
    return [errorAt(path, `is not inside one subnet with prefix length ${fixed.prefix}`)];
  const hasReserved = first.family === 4 && fixed.prefix < 31;
  return hasReserved && fixed.ranges.some((range) => includesReservedAddress(range, subnet))
    ? [
        errorAt(
          path,
          'contains the network or broadcast address of the subnet, which machines cannot use',
        ),
      ]
    : [];
}

function includesReservedAddress(
  range: AddressRange,
  subnet: { readonly first: bigint; readonly last: bigint },
): boolean {
  const from = parseIpAddress(range.from);
  const to = parseIpAddress(range.to);
  return (
    (from.ok && from.value.value === subnet.first) || (to.ok && to.value.value === subnet.last)
  );
}

function checkGateway(fixed: StaticAddressPool, first: IpAddress): readonly Finding[] {
  const gateway = fixed.gateway === undefined ? undefined : parseIpAddress(fixed.gateway);
  if (gateway?.ok !== true) return [];
  const path = [...fixed.path, 'gateway'];
  const subnet = subnetOf(first, fixed.prefix);
  const { family, value } = gateway.value;
  if (family !== first.family || value < subnet.first || value > subnet.last) {
    return [errorAt(path, 'is not in the subnet of the pool')];
  }
  return fixed.ranges.some((range) => rangeContains(range, gateway.value))
    ? [errorAt(path, 'is one of the addresses of the pool')]
    : [];
}
