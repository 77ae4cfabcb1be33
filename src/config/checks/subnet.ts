// SPDX-License-Identifier: Apache-2.0
// A static pool, its gateway and its prefix length belong together.
import { type Finding, wrong } from '../issues/finding.ts';
import {
  type Address,
  type AddressRange,
  PREFIX_MAX,
  parseAddress,
  rangeHolds,
  subnetOf,
} from '../values/address.ts';
import type { StaticPool } from './static-pool.ts';

/** Wider than any network a machine stands in: a mistyped prefix. */
const WIDEST = { 4: 8, 6: 32 } as const;

export function checkSubnet(fixed: StaticPool): readonly Finding[] {
  const [range] = fixed.ranges;
  const first = range === undefined ? undefined : parseAddress(range.from);
  if (first?.ok !== true) return [];
  const prefix = prefixProblem(fixed.prefix, first.value);
  if (prefix !== undefined) return [wrong([...fixed.path, 'prefix'], prefix)];
  return [...checkRanges(fixed, first.value), ...checkGateway(fixed, first.value)];
}

function prefixProblem(prefix: number, { family }: Address): string | undefined {
  if (prefix > PREFIX_MAX[family]) return `must be at most ${PREFIX_MAX[family]} for IPv${family}`;
  return prefix < WIDEST[family]
    ? `is wider than any real network; the subnet's prefix length is meant, such as ${family === 4 ? 24 : 64}`
    : undefined;
}

function checkRanges(fixed: StaticPool, first: Address): readonly Finding[] {
  const subnet = subnetOf(first, fixed.prefix);
  const path = [...fixed.path, 'pool'];
  const isInside = fixed.ranges.every((range) => {
    const last = parseAddress(range.to);
    const start = parseAddress(range.from);
    return (
      last.ok && start.ok && last.value.value <= subnet.last && start.value.value >= subnet.first
    );
  });
  if (!isInside) return [wrong(path, `leaves the subnet that prefix ${fixed.prefix} makes`)];
  const hasReserved = first.family === 4 && fixed.prefix < 31;
  return hasReserved && fixed.ranges.some((range) => touchesEnds(range, subnet))
    ? [wrong(path, 'contains the first or last address of the subnet, which no machine can have')]
    : [];
}

function touchesEnds(
  range: AddressRange,
  subnet: { readonly first: bigint; readonly last: bigint },
): boolean {
  const from = parseAddress(range.from);
  const to = parseAddress(range.to);
  return (
    (from.ok && from.value.value === subnet.first) || (to.ok && to.value.value === subnet.last)
  );
}

function checkGateway(fixed: StaticPool, first: Address): readonly Finding[] {
  const gateway = fixed.gateway === undefined ? undefined : parseAddress(fixed.gateway);
  if (gateway?.ok !== true) return [];
  const path = [...fixed.path, 'gateway'];
  const subnet = subnetOf(first, fixed.prefix);
  const { family, value } = gateway.value;
  if (family !== first.family || value < subnet.first || value > subnet.last) {
    return [wrong(path, 'is not in the subnet of the pool')];
  }
  return fixed.ranges.some((range) => rangeHolds(range, gateway.value))
    ? [wrong(path, 'is one of the addresses of the pool')]
    : [];
}
