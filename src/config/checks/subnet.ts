// SPDX-License-Identifier: Apache-2.0
// A static pool, its gateway and its prefix length must match.
import type { ConfigPath } from '../config-path.ts';
import { errorAt, type Finding } from '../issues/finding.ts';
import {
  type AddressRange,
  type IpAddress,
  type IpFamily,
  PREFIX_MAX,
  parseIpAddress,
  rangeContains,
  subnetOf,
} from '../values/ip-address.ts';

/** Static addresses of one IP family, with their path in the config. */
export interface StaticAddressPool {
  readonly path: ConfigPath;
  /** Undefined where the config does not fix the family. */
  readonly expected: IpFamily | undefined;
  readonly ranges: readonly AddressRange[];
  readonly prefix: number;
  readonly gateway: string | undefined;
}

/** A shorter prefix is a typing mistake: no subnet of machines is that large. */
const MIN_PREFIX = { 4: 8, 6: 32 } as const;

export function checkSubnet(addressPool: StaticAddressPool): readonly Finding[] {
  const [range] = addressPool.ranges;
  const first = range === undefined ? undefined : parseIpAddress(range.from);
  if (first?.ok !== true) return [];
  const prefix = findPrefixProblem(addressPool.prefix, first.value);
  if (prefix !== undefined) return [errorAt([...addressPool.path, 'prefix'], prefix)];
  return [...checkRanges(addressPool, first.value), ...checkGateway(addressPool, first.value)];
}

function findPrefixProblem(prefix: number, { family }: IpAddress): string | undefined {
  if (prefix > PREFIX_MAX[family]) return `must be at most ${PREFIX_MAX[family]} for IPv${family}`;
  return prefix < MIN_PREFIX[family]
    ? `is too short for a subnet; write the prefix length of the subnet, such as ${family === 4 ? 24 : 64}`
    : undefined;
}

function checkRanges(addressPool: StaticAddressPool, first: IpAddress): readonly Finding[] {
  const subnet = subnetOf(first, addressPool.prefix);
  const path = [...addressPool.path, 'pool'];
  const isInside = addressPool.ranges.every((range) => {
    const last = parseIpAddress(range.to);
    const start = parseIpAddress(range.from);
    return (
      last.ok && start.ok && last.value.value <= subnet.last && start.value.value >= subnet.first
    );
  });
  if (!isInside)
    return [errorAt(path, `is not inside one subnet with prefix length ${addressPool.prefix}`)];
  const hasReserved = first.family === 4 && addressPool.prefix < 31;
  return hasReserved && addressPool.ranges.some((range) => includesReservedAddress(range, subnet))
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

function checkGateway(addressPool: StaticAddressPool, first: IpAddress): readonly Finding[] {
  const gateway =
    addressPool.gateway === undefined ? undefined : parseIpAddress(addressPool.gateway);
  if (gateway?.ok !== true) return [];
  const path = [...addressPool.path, 'gateway'];
  const subnet = subnetOf(first, addressPool.prefix);
  const { family, value } = gateway.value;
  if (family !== first.family || value < subnet.first || value > subnet.last) {
    return [errorAt(path, 'is not in the subnet of the pool')];
  }
  return addressPool.ranges.some((range) => rangeContains(range, gateway.value))
    ? [errorAt(path, 'is one of the addresses of the pool')]
    : [];
}
