// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  formatQuantity,
  humanBytes,
  milliValue,
  parseQuantity,
  type Quantity,
  type QuantityFormat,
  quantityFromBytes,
  quantityFromCount,
  quantityFromMilli,
  wholeValue,
} from './quantity.ts';

function quantity(text: string): Quantity {
  const parsed = parseQuantity(text);
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.value;
}

const canonical = (text: string): string => formatQuantity(quantity(text));

describe('parseQuantity', () => {
  test.each([
    ['0', 0n],
    ['1', 10n ** 9n],
    ['+1', 10n ** 9n],
    ['-1', -(10n ** 9n)],
    ['.5', 500_000_000n],
    ['1.', 10n ** 9n],
    ['007', 7n * 10n ** 9n],
    ['1n', 1n],
    ['1u', 1000n],
    ['1m', 10n ** 6n],
    ['1k', 10n ** 12n],
    ['1M', 10n ** 15n],
    ['1G', 10n ** 18n],
    ['1T', 10n ** 21n],
    ['1P', 10n ** 24n],
    ['1E', 10n ** 27n],
    ['1Ki', 2n ** 10n * 10n ** 9n],
    ['1Mi', 2n ** 20n * 10n ** 9n],
    ['1Gi', 2n ** 30n * 10n ** 9n],
    ['1Ti', 2n ** 40n * 10n ** 9n],
    ['1Pi', 2n ** 50n * 10n ** 9n],
    ['1Ei', 2n ** 60n * 10n ** 9n],
    ['1.5Gi', 3n * 2n ** 29n * 10n ** 9n],
    ['1e3', 10n ** 12n],
    ['1E3', 10n ** 12n],
    ['1e+3', 10n ** 12n],
    ['1E-3', 10n ** 6n],
    ['1e1000', 10n ** 1009n],
  ])('parses %s as %d nano', (text, nano) => {
    expect(quantity(text).nano).toBe(nano);
  });

  test.each([
    ['0.1n', 1n],
    ['-0.1n', -1n],
    ['1.0000000001', 1_000_000_001n],
    ['-1.0000000001', -1_000_000_001n],
    ['1e-1000', 1n],
    ['0.00000000001Gi', 10_737_419n],
  ])('rounds %s away from zero to %d nano', (text, nano) => {
    expect(quantity(text).nano).toBe(nano);
  });

  test('caps binary amounts at 63 bits, but not decimal amounts', () => {
    expect(quantity('8Ei').nano).toBe((2n ** 63n - 1n) * 10n ** 9n);
    expect(quantity('-100Ei').nano).toBe(-(2n ** 63n - 1n) * 10n ** 9n);
    expect(quantity('7Ei').nano).toBe(7n * 2n ** 60n * 10n ** 9n);
    expect(quantity('100E').nano).toBe(10n ** 29n);
  });

  test.each(['+', '-', '.', '-.', 'm', 'Ki', 'Ti', 'E', 'e3', 'e-9'])(
    "parses '%s', which has no digits, as zero like Kubernetes",
    (text) => {
      expect(quantity(text).nano).toBe(0n);
    },
  );

  test.each(['Pi', 'Ei', '.Ei', '-Pi', 'e-10', '.e-10'])(
    "refuses '%s', which has no digits",
    (text) => {
      expect(parseQuantity(text)).toEqual({ ok: false, problem: 'quantity has no digits' });
    },
  );

  test.each([
    ['1', 'DecimalSI'],
    ['1E', 'DecimalSI'],
    ['1Ki', 'BinarySI'],
    ['0Ki', 'BinarySI'],
    ['0.001Ki', 'BinarySI'],
    ['0.0001Ki', 'DecimalSI'],
    ['-0.0001Ki', 'DecimalSI'],
    ['1e0', 'DecimalExponent'],
  ])('gives %s the format %s', (text, format) => {
    expect(quantity(text).format).toBe(format);
  });

  test.each([
    ['', 'quantity is empty'],
    ['16GB', "unknown suffix 'GB'; did you mean 'G' or 'Gi'?"],
    ['1e1001', 'exponent 1001 is outside ±1000'],
    ['1e-1001', 'exponent -1001 is outside ±1000'],
    ['1e99999999999999999999', 'exponent 99999999999999999999 is outside ±1000'],
  ])("refuses '%s': %s", (text, problem) => {
    expect(parseQuantity(text)).toEqual({ ok: false, problem });
  });

  const MALFORMED =
    '1e|1E+|1e-|1e1.5|1Ee3|1Ki3|1ki|1K|1..5|1.2.3|--1|+-1|5-3|0x1| 1|1 |1\n|1_000|NaN|Infinity|１|1µ'.split(
      '|',
    );

  test.each(MALFORMED)("refuses '%s'", (text) => {
    expect(parseQuantity(text).ok).toBe(false);
  });
});

describe('formatQuantity', () => {
  test.each([
    ['0', '0'],
    ['0Ki', '0'],
    ['1024Mi', '1Gi'],
    ['1025Mi', '1025Mi'],
    ['0.5', '500m'],
    ['1.5Gi', '1536Mi'],
    ['-1.5Gi', '-1536Mi'],
    ['0.5Ki', '512'],
    ['0.9765625Ki', '1k'],
    ['-0.9765625Ki', '-1k'],
    ['1Ki', '1Ki'],
    ['1.0001Ki', '1024102400u'],
    ['1000', '1k'],
    ['1500', '1500'],
    ['1000k', '1M'],
    ['0.1n', '1n'],
    ['1000000000n', '1'],
    ['+1', '1'],
    ['100e1', '1e3'],
    ['1e4', '10e3'],
    ['1e0', '1'],
    ['12e6', '12e6'],
    ['1e-3', '1e-3'],
    ['1E1000', '10e999'],
    ['9Ei', '9223372036854775807'],
  ])('formats %s as %s', (text, expected) => {
    expect(canonical(text)).toBe(expected);
  });

  test('keeps the largest suffix, which Kubernetes would drop', () => {
    expect(canonical('1000E')).toBe('1000E');
    expect(formatQuantity(quantityFromBytes(2n ** 70n))).toBe('1024Ei');
  });
});

describe('conversion to integers', () => {
  test.each([
    ['500m', 500n, 1n],
    ['1', 1000n, 1n],
    ['1.0001', 1001n, 2n],
    ['1n', 1n, 1n],
    ['-1.5', -1500n, -2n],
    ['0', 0n, 0n],
  ])('converts %s to %d thousandths and %d units', (text, milli, whole) => {
    expect(milliValue(quantity(text))).toBe(milli);
    expect(wholeValue(quantity(text))).toBe(whole);
  });

  test('converts integers to quantities', () => {
    expect(formatQuantity(quantityFromBytes(3 * 2 ** 30))).toBe('3Gi');
    expect(quantityFromMilli(1500n)).toEqual(quantity('1500m'));
    expect(quantityFromCount(110)).toEqual(quantity('110'));
  });
});

test.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1024, '1 KiB'],
  [1536 * 2 ** 20, '1.5 GiB'],
  [-(2 ** 31), '-2 GiB'],
  [1_099_000_000_000, '1023.5 GiB'],
  [2 ** 75, '32768 EiB'],
])('humanBytes formats %d bytes as %s', (bytes, text) => {
  expect(humanBytes(bytes)).toBe(text);
});

const anyQuantity: fc.Arbitrary<Quantity> = fc.record({
  nano: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n }).map((whole) => whole * 1_000_000n),
  format: fc.constantFrom<QuantityFormat>('BinarySI', 'DecimalSI', 'DecimalExponent'),
});

describe('every quantity', () => {
  test('parses back from its canonical text, which is canonical itself', () => {
    fc.assert(
      fc.property(anyQuantity, (one) => {
        const text = formatQuantity(one);
        expect(quantity(text).nano).toBe(one.nano);
        expect(canonical(text)).toBe(text);
      }),
    );
  });

  test('is never rounded to less', () => {
    fc.assert(
      fc.property(anyQuantity, (one) => {
        const size = one.nano < 0n ? -one.nano : one.nano;
        const milli = milliValue(one) * 1_000_000n;
        const excess = (milli < 0n ? -milli : milli) - size;
        expect(excess >= 0n && excess < 1_000_000n).toBe(true);
      }),
    );
  });

  test('is parsed or refused with a problem, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const parsed = parseQuantity(text);
        expect(parsed.ok || parsed.problem.length > 0).toBe(true);
      }),
    );
  });
});

test.each([
  ['GB', "unknown suffix 'GB'; did you mean 'G' or 'Gi'?"],
  ['gb', "unknown suffix 'gb'; did you mean 'G' or 'Gi'?"],
  ['g', "unknown suffix 'g'; did you mean 'G' or 'Gi'?"],
  ['K', "unknown suffix 'K'; did you mean 'k' or 'Ki'?"],
  ['kb', "unknown suffix 'kb'; did you mean 'k' or 'Ki'?"],
  ['MB', "unknown suffix 'MB'; did you mean 'M' or 'Mi'?"],
  ['mi', "unknown suffix 'mi'; did you mean 'Mi'?"],
  ['GiB', "unknown suffix 'GiB'; did you mean 'Gi'?"],
  ['B', "unknown suffix 'B'; bytes are written without a suffix"],
  ['bytes', "unknown suffix 'bytes'; bytes are written without a suffix"],
  ['cores', "unknown suffix 'cores'; cores are written without a suffix"],
  ['vcore', "unknown suffix 'vcore'; cores are written without a suffix"],
  ['cpu', "unknown suffix 'cpu'; cores are written without a suffix"],
  ['x', "unknown suffix 'x'; suffixes are n u m k M G T P E and Ki Mi Gi Ti Pi Ei"],
  ['GBs', "unknown suffix 'GBs'; suffixes are n u m k M G T P E and Ki Mi Gi Ti Pi Ei"],
  [' Gi', 'quantity contains white space'],
  [',5Gi', "quantity contains ','; the decimal separator is '.'"],
  ['e1.5', 'quantity must be a number with an optional suffix such as m, k, M, G, Ki, Mi or Gi'],
  ['-3', 'quantity must be a number with an optional suffix such as m, k, M, G, Ki, Mi or Gi'],
])("parseQuantity refuses '1%s': %s", (suffix, problem) => {
  expect(parseQuantity(`1${suffix}`)).toEqual({ ok: false, problem });
});
