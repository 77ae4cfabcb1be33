// SPDX-License-Identifier: Apache-2.0
// IPv4 and IPv6 addresses and address ranges of the config: a single address or `10.10.10.11-10.10.10.19`.
import { Address4, Address6 } from 'ip-address';
import { accepted, type Parsed, refused } from '../../model/parsed.ts';

export type IpFamily = 4 | 6;

export interface IpAddress {
  readonly family: IpFamily;
  readonly text: string;
  readonly value: bigint;
}

export interface AddressRange {
  readonly family: IpFamily;
  /** First and last address in canonical form, both included. */
  readonly from: string;
  readonly to: string;
  /** Number of addresses; limited to MAX_SAFE_INTEGER for large IPv6 ranges. */
  readonly count: number;
}

export const PREFIX_MAX: Readonly<Record<IpFamily, number>> = { 4: 32, 6: 128 };

export function parseIpAddress(text: string): Parsed<IpAddress> {
  // The library also accepts prefix lengths (`1.2.3.4/24`) and zones, which are not part of an address.
  if (/[/%\s]/.test(text)) return refused('is not an IP address without prefix length or zone');
  if (Address4.isValid(text)) {
    const address = new Address4(text);
    return accepted({ family: 4, text: address.correctForm(), value: address.bigInt() });
  }
  if (Address6.isValid(text)) {
    const address = new Address6(text);
    return accepted({ family: 6, text: address.correctForm(), value: address.bigInt() });
  }
  return refused('is not an IP address');
}

export function parseAddressRange(text: string): Parsed<AddressRange> {
  const [first = '', last = first, ...more] = text.split('-').map((part) => part.trim());
  if (more.length > 0) return refused("must be a range such as '10.0.0.11-10.0.0.19'");
  const from = parseIpAddress(first);
  if (!from.ok) return refused(`range start ${from.problem}`);
  const to = parseIpAddress(last);
  if (!to.ok) return refused(`range end ${to.problem}`);
  return toAddressRange(from.value, to.value);
}

function toAddressRange(from: IpAddress, to: IpAddress): Parsed<AddressRange> {
  if (from.family !== to.family) return refused('must not mix IPv4 and IPv6');
  if (from.value > to.value) return refused('ends before it starts');
  const count = to.value - from.value + 1n;
  return accepted({
    family: from.family,
    from: from.text,
    to: to.text,
    count: count > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(count),
  });
}

export function addressRangesOverlap(left: AddressRange, right: AddressRange): boolean {
  if (left.family !== right.family) return false;
  return (
    addressValue(left.from) <= addressValue(right.to) &&
    addressValue(right.from) <= addressValue(left.to)
  );
}

export function rangeContains(range: AddressRange, address: IpAddress): boolean {
  return (
    range.family === address.family &&
    addressValue(range.from) <= address.value &&
    address.value <= addressValue(range.to)
  );
}

/** First and last value of the subnet that contains the address. */
export function subnetOf(
  address: IpAddress,
  prefix: number,
): { readonly first: bigint; readonly last: bigint } {
  const hostBits = BigInt(PREFIX_MAX[address.family] - prefix);
  const first = (address.value >> hostBits) << hostBits;
  return { first, last: first + (1n << hostBits) - 1n };
}

/** Value of a validated address; zero for invalid text. */
export function addressValue(text: string): bigint {
  const parsed = parseIpAddress(text);
  return parsed.ok ? parsed.value.value : 0n;
}
