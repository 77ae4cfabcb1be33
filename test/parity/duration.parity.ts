// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { formatDuration, parseDuration } from '../../src/model/duration.ts';
import { testAgreement, toResponse } from './agreement.ts';

const digits = fc.oneof(
  { weight: 5, arbitrary: digitsUpTo(3) },
  { weight: 3, arbitrary: digitsUpTo(22) },
  { weight: 1, arbitrary: fc.nat({ max: 40 }).map((zeros) => '7'.padStart(zeros + 1, '0')) },
  { weight: 1, arbitrary: digitsUpTo(20).map((text) => `0000${text}`) },
);

const part = fc
  .tuple(
    digits,
    fc.oneof(
      fc.constant(''),
      fc.constant('.'),
      digits.map((text) => `.${text}`),
    ),
    fc.oneof(
      { weight: 30, arbitrary: fc.constantFrom('ns', 'us', 'µs', 'μs', 'ms', 's', 'm', 'h') },
      { weight: 1, arbitrary: fc.constantFrom('', 'd', 'S', 'sec', ' s', 's ') },
    ),
  )
  .map((parts) => parts.join(''));

const written = fc
  .tuple(fc.constantFrom('', '', '-', '+'), fc.array(part, { minLength: 1, maxLength: 4 }))
  .map(([sign, parts]) => sign + parts.join(''));

// Around the longest possible duration, 2^63 - 1 nanoseconds.
const longest = fc
  .tuple(fc.constantFrom('', '-'), fc.bigInt({ min: 2n ** 63n - 3n, max: 2n ** 63n + 3n }))
  .chain(([sign, size]) =>
    fc.constantFrom(`${sign}${size}ns`, `${sign}${micro(size)}`, `${sign}${hours(size)}`),
  );

const randomCharacters = fc.string({
  unit: fc.constantFrom(...'0123459..+-hmsnuµμ d'.split('')),
  maxLength: 12,
});

function digitsUpTo(maxLength: number): fc.Arbitrary<string> {
  return fc.string({ unit: fc.constantFrom(...'0123456789'.split('')), maxLength });
}

function micro(size: bigint): string {
  return `${size / 1000n}.${`${size % 1000n}`.padStart(3, '0')}us`;
}

function hours(size: bigint): string {
  const second = 10n ** 9n;
  const rest = size % (3600n * second);
  return `${size / (3600n * second)}h${rest / second}s${rest % second}ns`;
}

const EDGE_CASES = [
  '|0|+0|-0|00|0s|-0s|+|-|.|.s|-.s|1|30|1.|1.s|.5s|1..5s|1h30m|1.5m|-2s|+5s|1h-30m|1 h|1H|1d|100ns|1us|1µs|1μs',
  '1ms1s1h|0.3s|0.9999999999999h|0.0000000000001h|.000000000000000000000000000000000000001h|0.33333333333333333333h',
  '9223372036854775807ns|9223372036854775808ns|-9223372036854775808ns|-9223372036854775809ns|9223372036854775.807us',
  '9223372036s854ms775us807ns|2562047h47m16.854775807s|2562047h47m16.854775808s|-2562047h47m16.854775808s|2562048h',
  '99999999999999999999s|3000000h|1.9999999999999999999s|１s|0.9223372036854775807s|0.9223372036854775808s',
  '0.9223372036854775809s|0.694975532434166608666h|0.12345678901234567890123s|0.00000012345678901234567890123h',
].flatMap((row) => row.split('|'));

testAgreement('durations', {
  share: 0.25,
  inputs: fc.oneof(
    { weight: 7, arbitrary: written },
    { weight: 1, arbitrary: longest },
    { weight: 2, arbitrary: randomCharacters },
  ),
  edgeCases: EDGE_CASES,
  request: (text) => ({ kind: 'duration', text }),
  ours: (text) =>
    toResponse(parseDuration(text), (duration) => ({
      nanoseconds: `${duration.nanoseconds}`,
      canonical: formatDuration(duration),
    })),
});
