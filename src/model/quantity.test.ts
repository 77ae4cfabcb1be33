// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addQuantities,
  compareQuantities,
  formatQuantity,
  humanBytes,
  milliValue,
  parseQuantity,
  type Quantity,
  type QuantityFormat,
  quantityFromBytes,
  quantityFromCount,
  quantityFromMilli,
  subtractQuantities,
  wholeValue,
  ZERO_QUANTITY,
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
  ])('%s is %d nano', (text, nano) => {
    expect(quantity(text).nano).toBe(nano);
  });

  test.each([
    ['0.1n', 1n],
    ['-0.1n', -1n],
    ['1.0000000001', 1_000_000_001n],
    ['-1.0000000001', -1_000_000_001n],
    ['1e-1000', 1n],
    ['0.00000000001Gi', 10_737_419n],
  ])('%s, finer than a nano, is rounded away from zero to %d', (text, nano) => {
    expect(quantity(text).nano).toBe(nano);
  });

  test('binary amounts are capped at what 63 bits hold, decimal ones are not', () => {
    expect(quantity('8Ei').nano).toBe((2n ** 63n - 1n) * 10n ** 9n);
    expect(quantity('-100Ei').nano).toBe(-(2n ** 63n - 1n) * 10n ** 9n);
    expect(quantity('7Ei').nano).toBe(7n * 2n ** 60n * 10n ** 9n);
    expect(quantity('100E').nano).toBe(10n ** 29n);
  });

  test.each(['+', '-', '.', '-.', 'm', 'Ki', 'Ti', 'E', 'e3', 'e-9'])(
    "'%s' has no digits and is zero, as Kubernetes sees it",
    (text) => {
      expect(quantity(text).nano).toBe(0n);
    },
  );

  test.each(['Pi', 'Ei', '.Ei', '-Pi', 'e-10', '.e-10'])(
    "'%s' has no digits and is refused",
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
  ])('%s is of format %s', (text, format) => {
    expect(quantity(text).format).toBe(format);
  });

  test.each([
    ['', 'quantity is empty'],
    ['16GB', "unknown suffix 'GB'; did you mean 'G' or 'Gi'?"],
    ['1e1001', 'exponent 1001 is beyond ±1000'],
    ['1e-1001', 'exponent -1001 is beyond ±1000'],
    ['1e99999999999999999999', 'exponent 99999999999999999999 is beyond ±1000'],
  ])("'%s' is refused: %s", (text, problem) => {
    expect(parseQuantity(text)).toEqual({ ok: false, problem });
  });

  const MALFORMED =
    '1e|1E+|1e-|1e1.5|1Ee3|1Ki3|1ki|1K|1..5|1.2.3|--1|+-1|5-3|0x1| 1|1 |1\n|1_000|NaN|Infinity|１|1µ'.split(
      '|',
    );

  test.each(MALFORMED)("'%s' is refused", (text) => {
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
  ])('%s becomes %s', (text, expected) => {
    expect(canonical(text)).toBe(expected);
  });

  test('keeps the largest suffix where Kubernetes would lose it', () => {
    expect(canonical('1000E')).toBe('1000E');
    expect(formatQuantity(quantityFromBytes(2n ** 70n))).toBe('1024Ei');
  });
});

describe('arithmetic', () => {
  test('adds and subtracts exactly', () => {
    expect(formatQuantity(addQuantities(quantity('1Gi'), quantity('512Mi')))).toBe('1536Mi');
    expect(formatQuantity(subtractQuantities(quantity('1'), quantity('1n')))).toBe('999999999n');
  });

  test("keeps the left one's format, unless that is zero", () => {
    expect(formatQuantity(addQuantities(quantity('2048'), quantity('1Ki')))).toBe('3072');
    expect(formatQuantity(addQuantities(ZERO_QUANTITY, quantity('3Ki')))).toBe('3Ki');
    expect(formatQuantity(subtractQuantities(ZERO_QUANTITY, quantity('3Ki')))).toBe('-3Ki');
  });

  test('compares amounts, not their text', () => {
    expect(compareQuantities(quantity('1Gi'), quantity('1024Mi'))).toBe(0);
    expect(compareQuantities(quantity('1G'), quantity('1Gi'))).toBe(-1);
    expect(compareQuantities(quantity('1'), quantity('999m'))).toBe(1);
  });
});

describe('integers', () => {
  test.each([
    ['500m', 500n, 1n],
    ['1', 1000n, 1n],
    ['1.0001', 1001n, 2n],
    ['1n', 1n, 1n],
    ['-1.5', -1500n, -2n],
    ['0', 0n, 0n],
  ])('%s is %d thousandths and %d whole', (text, milli, whole) => {
    expect(milliValue(quantity(text))).toBe(milli);
    expect(wholeValue(quantity(text))).toBe(whole);
  });

  test('become quantities', () => {
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
])('%d bytes read %s', (bytes, text) => {
  expect(humanBytes(bytes)).toBe(text);
});

const anyQuantity: fc.Arbitrary<Quantity> = fc.record({
  nano: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n }).map((whole) => whole * 1_000_000n),
  format: fc.constantFrom<QuantityFormat>('BinarySI', 'DecimalSI', 'DecimalExponent'),
});

describe('for all quantities', () => {
  test('the canonical text means the same amount and is its own canonical text', () => {
    fc.assert(
      fc.property(anyQuantity, (one) => {
        const text = formatQuantity(one);
        expect(quantity(text).nano).toBe(one.nano);
        expect(canonical(text)).toBe(text);
      }),
    );
  });

  test('subtracting what was added gives the amount back', () => {
    fc.assert(
      fc.property(anyQuantity, anyQuantity, (one, other) => {
        const back = subtractQuantities(addQuantities(one, other), other);
        expect(compareQuantities(back, one)).toBe(0);
      }),
    );
  });

  test('rounding never gives less than was asked for', () => {
    fc.assert(
      fc.property(anyQuantity, (one) => {
        const size = one.nano < 0n ? -one.nano : one.nano;
        const milli = milliValue(one) * 1_000_000n;
        const excess = (milli < 0n ? -milli : milli) - size;
        expect(excess >= 0n && excess < 1_000_000n).toBe(true);
      }),
    );
  });

  test('whatever the text, there is an answer', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const parsed = parseQuantity(text);
        expect(parsed.ok || parsed.problem.length > 0).toBe(true);
      }),
    );
  });
});
