// SPDX-License-Identifier: Apache-2.0
// IP addresses as numbers, so that different notations of an address compare equal.
import { Address4, Address6 } from 'ip-address';
import { accepted, type Parsed, refused } from '../../model/parsed.ts';

export type Family = 4 | 6;

export interface Address {
  readonly family: Family;
  readonly value: bigint;
}

/** First and last address, inclusive. */
export interface AddressRange {
  readonly from: string;
  readonly to: string;
}

const BITS: Readonly<Record<Family, number>> = { 4: 32, 6: 128 };
const MAPPED_V4 = 0xffffn;

/** With or without prefix length or zone. An IPv4-mapped IPv6 address (`::ffff:10.0.0.1`) is read as IPv4. */
export function readAddress(text: string): Address | undefined {
  const bare = text.trim().replace(/[/%].*$/, '');
  if (Address4.isValid(bare)) return { family: 4, value: new Address4(bare).bigInt() };
  if (!Address6.isValid(bare)) return undefined;
  const value = new Address6(bare).bigInt();
  return value >> 32n === MAPPED_V4
    ? { family: 4, value: BigInt.asUintN(32, value) }
    : { family: 6, value };
}

/** Canonical text without prefix length. */
export function formatAddress({ family, value }: Address): string {
  return (family === 4 ? Address4.fromBigInt(value) : Address6.fromBigInt(value)).correctForm();
}

/** The canonical text without prefix length; other text unchanged. */
export function canonicalAddress(text: string): string {
  const address = readAddress(text);
  return address === undefined ? text : formatAddress(address);
}

/** `10.0.0.11-10.0.0.19`, `10.0.0.16/28`, or a single address; IPv6 likewise. */
export function parseAddressRange(text: string): Parsed<AddressRange> {
  const [first = '', last = first, ...more] = text.split('-');
  if (more.length > 0) return refused('has more than one hyphen');
  if (first.includes('/')) {
    return last === first
      ? parseCidrBlock(first)
      : refused('must be either a range or a CIDR block');
  }
  const from = readAddress(first);
  const to = readAddress(last);
  if (from === undefined || to === undefined) return refused('does not consist of IP addresses');
  if (from.family !== to.family) return refused('mixes IPv4 and IPv6');
  if (from.value > to.value) return refused('ends before it begins');
  return accepted({ from: formatAddress(from), to: formatAddress(to) });
}

function parseCidrBlock(text: string): Parsed<AddressRange> {
  const [, bits] = /^[^/]+\/(\d{1,3})$/.exec(text.trim()) ?? [];
  const address = readAddress(text);
  if (bits === undefined || address === undefined || Number(bits) > BITS[address.family]) {
    return refused("is not a CIDR block such as '10.0.0.16/28'");
  }
  const hostBits = BigInt(BITS[address.family] - Number(bits));
  const first = (address.value >> hostBits) << hostBits;
  const last = first + (1n << hostBits) - 1n;
  const { family } = address;
  return accepted({
    from: formatAddress({ family, value: first }),
    to: formatAddress({ family, value: last }),
  });
}

/**
 * Whether no machine can have this address in a subnet of this prefix length: the first address (the network;
 * in IPv6 the subnet-router anycast address) and in IPv4 the last one (broadcast). A subnet of one or two
 * addresses has neither.
 */
export function isReservedAddress({ family, value }: Address, prefix: number): boolean {
  const hostBits = BITS[family] - prefix;
  if (hostBits < 2) return false;
  const host = BigInt.asUintN(hostBits, value);
  return host === 0n || (family === 4 && host === (1n << BigInt(hostBits)) - 1n);
}
