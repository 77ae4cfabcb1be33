// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { formatAddress, parseAddressRange, readAddress } from './address.ts';

describe('parseAddressRange', () => {
  it.each([
    ['10.0.0.11-10.0.0.19', '10.0.0.11', '10.0.0.19'],
    ['10.0.0.11 - 10.0.0.19', '10.0.0.11', '10.0.0.19'],
    ['10.0.0.11', '10.0.0.11', '10.0.0.11'],
    ['10.0.0.20/28', '10.0.0.16', '10.0.0.31'],
    ['10.0.0.20/32', '10.0.0.20', '10.0.0.20'],
    ['0.0.0.0/0', '0.0.0.0', '255.255.255.255'],
    ['2001:DB8::5-2001:db8::0009', '2001:db8::5', '2001:db8::9'],
    ['2001:db8::/64', '2001:db8::', '2001:db8::ffff:ffff:ffff:ffff'],
    ['2001:db8::7/128', '2001:db8::7', '2001:db8::7'],
  ])('parses %s as %s to %s', (text, from, to) => {
    expect(parseAddressRange(text)).toEqual({ ok: true, value: { from, to } });
  });

  it.each([
    ['', 'does not consist of IP addresses'],
    ['pve1', 'does not consist of IP addresses'],
    ['10.0.0.1-', 'does not consist of IP addresses'],
    ['10.0.0.1-10.0.0.2-10.0.0.3', 'has more than one hyphen'],
    ['10.0.0.9-10.0.0.1', 'ends before it begins'],
    ['10.0.0.9-2001:db8::1', 'mixes IPv4 and IPv6'],
    ['10.0.0.0/24-10.0.1.0', 'must be either a range or a CIDR block'],
    ['10.0.0.0/33', "is not a CIDR block such as '10.0.0.16/28'"],
    ['2001:db8::/129', "is not a CIDR block such as '10.0.0.16/28'"],
    ['10.0.0.0/x', "is not a CIDR block such as '10.0.0.16/28'"],
    ['nothing/24', "is not a CIDR block such as '10.0.0.16/28'"],
  ])("refuses '%s': %s", (text, problem) => {
    expect(parseAddressRange(text)).toEqual({ ok: false, problem });
  });
});

describe('readAddress', () => {
  it.each([
    ['10.0.0.1/24', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['::FFFF:a00:1/120', '10.0.0.1'],
    ['fe80::1%vmbr0', 'fe80::1'],
    ['2001:0DB8:0000::0001', '2001:db8::1'],
    ['::', '::'],
  ])('reads %s as %s', (text, canonical) => {
    expect(formatAddress(readAddress(text)!)).toBe(canonical);
  });

  it.each(['', '10.0.0', '10.0.0.256', '010.0.0.1', '::1::', 'dhcp', '/24'])(
    "reads '%s' as undefined",
    (text) => {
      expect(readAddress(text)).toBeUndefined();
    },
  );
});
