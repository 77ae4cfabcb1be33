// SPDX-License-Identifier: Apache-2.0
// IP addresses as numbers, so that every way of writing one is the same one.
import { Address4, Address6 } from 'ip-address';
import { accepted, type Parsed, refused } from '../../model/parsed.ts';

export type Family = 4 | 6;

export interface Address {
  readonly family: Family;
  readonly value: bigint;
}

/** First and last address, both included. */
export interface AddressSpan {
  readonly from: string;
  readonly to: string;
}

const BITS: Readonly<Record<Family, number>> = { 4: 32, 6: 128 };
const MAPPED_V4 = 0xffffn;

/** With or without prefix length or zone. An IPv4 address in IPv6 form (`::ffff:10.0.0.1`) is the IPv4 one. */
export function readAddress(text: string): Address | undefined {
  const bare = text.trim().replace(/[/%].*$/, '');
  if (Address4.isValid(bare)) return { family: 4, value: new Address4(bare).bigInt() };
  if (!Address6.isValid(bare)) return undefined;
  const value = new Address6(bare).bigInt();
  return value >> 32n === MAPPED_V4
    ? { family: 4, value: BigInt.asUintN(32, value) }
    : { family: 6, value };
}

/** Canonical, without prefix length. */
export function addressText({ family, value }: Address): string {
  return (family === 4 ? Address4.fromBigInt(value) : Address6.fromBigInt(value)).correctForm();
}

/** `10.0.0.11-10.0.0.19`, `10.0.0.16/28`, or one address; IPv6 alike. */
export function parseAddressSpan(text: string): Parsed<AddressSpan> {
  const [first = '', last = first, ...more] = text.split('-');
  if (more.length > 0) return refused('has more than one hyphen');
  if (first.includes('/')) {
    return last === first ? blockSpan(first) : refused('is neither a range nor a block');
  }
  const from = readAddress(first);
  const to = readAddress(last);
  if (from === undefined || to === undefined) return refused('is not made of IP addresses');
  if (from.family !== to.family) return refused('mixes IPv4 and IPv6');
  if (from.value > to.value) return refused('ends before it begins');
  return accepted({ from: addressText(from), to: addressText(to) });
}

function blockSpan(text: string): Parsed<AddressSpan> {
  const [, bits] = /^[^/]+\/(\d{1,3})$/.exec(text.trim()) ?? [];
  const address = readAddress(text);
  if (bits === undefined || address === undefined || Number(bits) > BITS[address.family]) {
    return refused("is not a block such as '10.0.0.16/28'");
  }
  const hostBits = BigInt(BITS[address.family] - Number(bits));
  const first = (address.value >> hostBits) << hostBits;
  const last = first + (1n << hostBits) - 1n;
  const { family } = address;
  return accepted({
    from: addressText({ family, value: first }),
    to: addressText({ family, value: last }),
  });
}

/**
 * Addresses that no machine can have in a subnet of this prefix length: the first (the network itself; in IPv6
 * all routers of the subnet) and in IPv4 the last (broadcast). A subnet of two or one has neither.
 */
export function isReserved({ family, value }: Address, prefix: number): boolean {
  const hostBits = BITS[family] - prefix;
  if (hostBits < 2) return false;
  const host = BigInt.asUintN(hostBits, value);
  return host === 0n || (family === 4 && host === (1n << BigInt(hostBits)) - 1n);
}
