// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { parseBytes, parseCount, parseCpuMilli, parseMilliseconds } from './amount.ts';
import { closestMatch, editDistance } from './closest-match.ts';
import {
  addressRangesOverlap,
  parseAddressRange,
  parseIpAddress,
  rangeContains,
  subnetOf,
} from './ip-address.ts';
import { formatListenAddress, isLoopback, parseListenAddress } from './listen-address.ts';
import { parseVmIdRange, vmIdCount, vmIdRangesOverlap } from './vm-id-range.ts';

describe('VM id ranges', () => {
  it.each([
    ['1250-1300', { from: 1250, to: 1300 }],
    ['100 - 100', { from: 100, to: 100 }],
    ['99-200', undefined],
    ['100-1000000000', undefined],
    ['300-200', undefined],
    ['100', undefined],
    ['a-b', undefined],
  ])('parses %s', (text, range) => {
    const parsed = parseVmIdRange(text);
    expect(parsed.ok ? parsed.value : undefined).toEqual(range);
  });

  it('counts both ends and detects overlaps', () => {
    expect(vmIdCount({ from: 100, to: 109 })).toBe(10);
    expect(vmIdRangesOverlap({ from: 100, to: 200 }, { from: 200, to: 300 })).toBe(true);
    expect(vmIdRangesOverlap({ from: 100, to: 199 }, { from: 200, to: 300 })).toBe(false);
    expect(vmIdRangesOverlap({ from: 200, to: 300 }, { from: 100, to: 199 })).toBe(false);
  });
});

describe('listen addresses', () => {
  it.each([
    [':50051', '', 50_051],
    ['0.0.0.0:8080', '0.0.0.0', 8080],
    ['localhost:80', 'localhost', 80],
    ['[::1]:8080', '::1', 8080],
    ['[fe80::1%eth0]:8080', 'fe80::1%eth0', 8080],
    ['host%zone:8080', 'host%zone', 8080],
  ])('parses %s', (text, host, port) => {
    const parsed = parseListenAddress(text);
    expect(parsed).toEqual({ ok: true, value: { host, port } });
    expect(formatListenAddress({ host, port })).toBe(text);
  });

  it.each([
    '8080',
    '::1:8080',
    'a b:1',
    '[::1]',
    '[10.0.0.1]:1',
    '300.0.0.1:1',
    ':70000',
    '[fe80::1%]:1',
    '',
  ])('refuses %j', (text) => {
    expect(parseListenAddress(text).ok).toBe(false);
  });

  it('detects loopback addresses', () => {
    expect(
      ['127.0.0.1', '127.9.9.9', '::1', 'localhost'].every((host) => isLoopback({ host, port: 1 })),
    ).toBe(true);
    expect(['', '0.0.0.0', '10.0.0.1'].some((host) => isLoopback({ host, port: 1 }))).toBe(false);
  });
});

describe('IP addresses and ranges', () => {
  it.each(['10.0.0.1', 'fd00::1', '::'])('accepts %s', (text) => {
    expect(parseIpAddress(text).ok).toBe(true);
  });

  it.each(['10.0.0.1/24', 'fe80::1%eth0', '010.0.0.1', '10.0.0', 'x', '', '10.0.0.1 '])(
    'refuses %j',
    (text) => {
      expect(parseIpAddress(text).ok).toBe(false);
    },
  );

  it.each([
    ['10.0.0.11-10.0.0.19', 9],
    ['10.0.0.11', 1],
    ['fd00::10 - fd00::1f', 16],
    ['::-ffff:ffff:ffff:ffff::', Number.MAX_SAFE_INTEGER],
  ])('%s contains %i addresses', (text, count) => {
    const parsed = parseAddressRange(text);
    expect(parsed.ok && parsed.value.count).toBe(count);
  });

  it.each([
    ['10.0.0.19-10.0.0.11', 'ends before it starts'],
    ['10.0.0.1-fd00::1', 'must not mix IPv4 and IPv6'],
    ['10.0.0.1-2-3', "must be a range such as '10.0.0.11-10.0.0.19'"],
    ['x-10.0.0.1', 'range start is not an IP address'],
    ['10.0.0.1-x', 'range end is not an IP address'],
  ])('refuses %s', (text, problem) => {
    expect(parseAddressRange(text)).toEqual({ ok: false, problem });
  });

  it('compares ranges by family and value', () => {
    const range = (text: string) => {
      const parsed = parseAddressRange(text);
      if (!parsed.ok) throw new Error(parsed.problem);
      return parsed.value;
    };
    const address = (text: string) => {
      const parsed = parseIpAddress(text);
      if (!parsed.ok) throw new Error(parsed.problem);
      return parsed.value;
    };
    expect(addressRangesOverlap(range('10.0.0.1-10.0.0.9'), range('10.0.0.9-10.0.0.10'))).toBe(
      true,
    );
    expect(addressRangesOverlap(range('10.0.0.1-10.0.0.9'), range('10.0.0.10'))).toBe(false);
    expect(addressRangesOverlap(range('0.0.0.1'), range('::1'))).toBe(false);
    expect(rangeContains(range('10.0.0.1-10.0.0.9'), address('10.0.0.9'))).toBe(true);
    expect(rangeContains(range('10.0.0.1-10.0.0.9'), address('10.0.0.10'))).toBe(false);
    expect(subnetOf(address('10.0.0.77'), 24)).toEqual({
      first: address('10.0.0.0').value,
      last: address('10.0.0.255').value,
    });
  });
});

describe('amounts', () => {
  it.each([
    [parseBytes, '2Gi', 2 * 1024 ** 3],
    [parseBytes, 0, 0],
    [parseBytes, '.5Gi', 512 * 1024 ** 2],
    [parseCount, '2k', 2000],
    [parseCpuMilli, '250m', 250],
    [parseCpuMilli, 1.5, 1500],
    [parseMilliseconds, '1h30m', 5_400_000],
    [parseMilliseconds, 0, 0],
  ] as const)('%o of %s', (parse, text, value) => {
    expect(parse(text)).toEqual({ ok: true, value });
  });

  it.each([
    [parseBytes, 5, "is only 5 bytes; add a unit, such as '2Gi' or '512Mi'"],
    [parseBytes, '-1Gi', 'is negative'],
    [parseBytes, '100E', 'is too large'],
    [parseBytes, 'Gi', "has no number; write a number with a unit, such as '2Gi'"],
    [parseBytes, '-', "has no number; write a number with a unit, such as '2Gi'"],
    [parseBytes, '.', "has no number; write a number with a unit, such as '2Gi'"],
    [parseBytes, 'e3', "has no number; write a number with a unit, such as '2Gi'"],
    [parseCpuMilli, 'm', "has no number; write a number with a unit, such as '2Gi'"],
    [parseCount, 1.5, 'must be a whole number'],
    [parseCount, '500m', 'must be a whole number'],
    [parseMilliseconds, '.', "duration must have the form '1h30m' or '45s'"],
    [parseMilliseconds, 20, "missing unit; did you mean '20s'?"],
    [parseMilliseconds, '-5s', 'is negative'],
    [parseMilliseconds, Number.NaN, "duration must have the form '1h30m' or '45s'"],
  ] as const)('%o refuses %s', (parse, text, problem) => {
    expect(parse(text)).toEqual({ ok: false, problem });
  });
});

describe('closestMatch', () => {
  it.each([
    ['memry', 'memory'],
    ['mem', 'memory'],
    ['me', undefined],
    ['node_groups', undefined],
    ['batchsize', 'batchSize'],
    ['drain_timeout', 'drainTimeout'],
    ['lables', 'labels'],
    ['xyz', undefined],
    ['', undefined],
    ['x'.repeat(65), undefined],
  ])('%s → %s', (word, expected) => {
    expect(closestMatch(word, ['memory', 'batchSize', 'drainTimeout', 'labels'])).toBe(expected);
  });

  it('counts a swap of two adjacent characters as one edit', () => {
    expect(editDistance('naem', 'name')).toBe(1);
    expect(editDistance('kitten', 'sitting')).toBe(3);
    expect(editDistance('', 'abc')).toBe(3);
  });
});
