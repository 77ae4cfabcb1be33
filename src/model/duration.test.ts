// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Duration,
  durationFromMs,
  durationToMs,
  formatDuration,
  parseDuration,
} from './duration.ts';

function duration(text: string): Duration {
  const parsed = parseDuration(text);
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.value;
}

describe('parseDuration', () => {
  test.each([
    ['0', 0n],
    ['-0', 0n],
    ['+0', 0n],
    ['0s', 0n],
    ['1ns', 1n],
    ['1us', 1000n],
    ['1\u00b5s', 1000n],
    ['1\u03bcs', 1000n],
    ['1ms', 1_000_000n],
    ['1s', 1_000_000_000n],
    ['1m', 60_000_000_000n],
    ['1h', 3_600_000_000_000n],
    ['1h30m', 5_400_000_000_000n],
    ['1.5m', 90_000_000_000n],
    ['.5s', 500_000_000n],
    ['1.s', 1_000_000_000n],
    ['-2s', -2_000_000_000n],
    ['+5s', 5_000_000_000n],
    ['1s1s', 2_000_000_000n],
    ['1.9ns', 1n],
    ['9223372036854775807ns', 2n ** 63n - 1n],
    ['-9223372036854775808ns', -(2n ** 63n)],
    ['2562047h47m16.854775807s', 2n ** 63n - 1n],
  ])('parses %s as %d ns', (text, nanoseconds) => {
    expect(duration(text).nanoseconds).toBe(nanoseconds);
  });

  test('computes fractions in floating point, as Go does', () => {
    // Exactly, these would be 1199999999999.99… and 3599999999999.64 ns.
    expect(duration('0.33333333333333333333h').nanoseconds).toBe(1_200_000_000_000n);
    expect(duration('0.9999999999999h').nanoseconds).toBe(3_599_999_999_999n);
    expect(duration('0.00000000000000000000000000000001h').nanoseconds).toBe(0n);
  });

  test('ignores fraction digits beyond 63 bits', () => {
    // With all digits this would be one nanosecond more.
    expect(duration('0.694975532434166608666h').nanoseconds).toBe(2_501_911_916_762n);
    expect(duration('0.99999999999999999999999999s').nanoseconds).toBe(1_000_000_000n);
  });

  test.each([
    ['', 'duration is empty'],
    ['-', 'duration is empty'],
    ['30', "missing unit; did you mean '30s'?"],
    ['1.5', "missing unit; did you mean '1.5s'?"],
    ['1m30', "missing unit; did you mean '30s'?"],
    ['1.', "missing unit; did you mean '1s'?"],
    ['.s', "duration must have the form '1h30m' or '45s'"],
    ['s', "duration must have the form '1h30m' or '45s'"],
    ['.', "duration must have the form '1h30m' or '45s'"],
    ['1d', "unknown unit 'd'; a day is '24h'"],
    ['2weeks', "unknown unit 'weeks'; a week is '168h'"],
    ['1S', "unknown unit 'S'; did you mean 's'?"],
    ['5sec', "unknown unit 'sec'; did you mean 's'?"],
    ['5min', "unknown unit 'min'; did you mean 'm'?"],
    ['5hours', "unknown unit 'hours'; did you mean 'h'?"],
    ['5millis', "unknown unit 'millis'; did you mean 'ms'?"],
    ['5y', "unknown unit 'y'; units are ns, us, ms, s, m and h"],
    ['1 h', 'duration contains white space'],
    ['1h-30m', "unknown unit 'h-'; units are ns, us, ms, s, m and h"],
    ['9223372036854775808ns', 'duration is longer than about 292 years'],
    ['-9223372036854775809ns', 'duration is longer than about 292 years'],
    ['2562047h47m16.854775808s', 'duration is longer than about 292 years'],
    ['9223372036854775.808us', 'duration is longer than about 292 years'],
    ['2562048h', 'duration is longer than about 292 years'],
  ])("refuses '%s': %s", (text, problem) => {
    expect(parseDuration(text)).toEqual({ ok: false, problem });
  });

  // Go's counter overflows here and reports zero.
  test('refuses two halves of the 64-bit range', () => {
    const half = '9223372036854775808ns';
    expect(parseDuration(half + half).ok).toBe(false);
  });
});

describe('formatDuration', () => {
  test.each([
    ['0', '0s'],
    ['1ns', '1ns'],
    ['1000ns', '1µs'],
    ['1100ns', '1.1µs'],
    ['1ms', '1ms'],
    ['999999ns', '999.999µs'],
    ['2200us', '2.2ms'],
    ['300ms', '300ms'],
    ['1s', '1s'],
    ['90s', '1m30s'],
    ['60s', '1m0s'],
    ['1h', '1h0m0s'],
    ['1h30m', '1h30m0s'],
    ['100h1ns', '100h0m0.000000001s'],
    ['3.05s', '3.05s'],
    ['-90s', '-1m30s'],
    ['-5ms', '-5ms'],
    ['-9223372036854775808ns', '-2562047h47m16.854775808s'],
  ])('formats %s as %s', (text, canonical) => {
    expect(formatDuration(duration(text))).toBe(canonical);
  });
});

describe('milliseconds', () => {
  test.each([
    ['0', 0],
    ['1s', 1000],
    ['1ns', 1],
    ['-1ns', -1],
    ['1500us', 2],
    ['2ms', 2],
  ])('converts %s to %d ms, rounded away from zero', (text, ms) => {
    expect(durationToMs(duration(text))).toBe(ms);
  });

  test('converts milliseconds to a duration', () => {
    expect(formatDuration(durationFromMs(1500))).toBe('1.5s');
  });
});

describe('every duration', () => {
  const anyDuration = fc
    .oneof(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.maxSafeInteger().map(BigInt))
    .map((nanoseconds) => ({ nanoseconds }));

  test('parses back from its canonical text', () => {
    fc.assert(
      fc.property(anyDuration, (one) => {
        expect(duration(formatDuration(one))).toEqual(one);
      }),
    );
  });

  test('is parsed or refused with a problem, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const parsed = parseDuration(text);
        expect(parsed.ok || parsed.problem.length > 0).toBe(true);
      }),
    );
  });
});
