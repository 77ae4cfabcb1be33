// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import {
  formatQuantity,
  milliValue,
  parseQuantity,
  type Quantity,
  wholeValue,
} from '../../src/model/quantity.ts';
import { testAgreement, toResponse } from './agreement.ts';
import type { ReferenceResponse } from './reference-process.ts';

const SUFFIXES = [
  '|n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei',
  'K|g|i|ki|Gb|GiB|e|Ee3|e-|E+|e1.5|Ki3| |μ|\n',
].flatMap((row) => row.split('|'));

const digits = fc.oneof(
  { weight: 5, arbitrary: digitsUpTo(4) },
  { weight: 3, arbitrary: digitsUpTo(25) },
  { weight: 2, arbitrary: fc.nat({ max: 30 }).map((zeros) => '1'.padEnd(zeros + 1, '0')) },
  { weight: 1, arbitrary: fc.nat({ max: 30 }).map((zeros) => '1'.padStart(zeros + 1, '0')) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('9223372036854775807', '9223372036854775808', '1023', '1024', '8'),
  },
);

const exponent = fc
  .tuple(
    fc.constantFrom('e', 'E'),
    fc.constantFrom('', '+', '-', '+0', '-0', '00'),
    fc.oneof(fc.nat({ max: 25 }), fc.nat({ max: 1000 })),
  )
  .map((parts) => parts.join(''));

const written = fc
  .tuple(
    fc.constantFrom('', '', '', '-', '+'),
    digits,
    fc.oneof(
      fc.constant(''),
      fc.constant('.'),
      digits.map((text) => `.${text}`),
    ),
    fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...SUFFIXES) },
      { weight: 1, arbitrary: exponent },
    ),
  )
  .map((parts) => parts.join(''));

const randomCharacters = fc.string({
  unit: fc.constantFrom(...'0011259..+-eEinumkKMGTP '.split('')),
  maxLength: 10,
});

const quantityText = fc
  .oneof({ weight: 8, arbitrary: written }, { weight: 2, arbitrary: randomCharacters })
  .filter((text) => !hasHugeExponent(text));

function digitsUpTo(maxLength: number): fc.Arbitrary<string> {
  return fc.string({ unit: fc.constantFrom(...'0123456789'.split('')), maxLength });
}

// Kubernetes wraps these exponents at 32 bits and needs minutes for some; the model refuses them.
function hasHugeExponent(text: string): boolean {
  return Number(/[eE][+-]?(\d+)$/.exec(text)?.[1] ?? 0) > 1000;
}

function describe(quantity: Quantity): ReferenceResponse {
  return {
    canonical: asKubernetesWrites(formatQuantity(quantity)),
    format: quantity.format,
    milli: `${milliValue(quantity)}`,
    whole: `${wholeValue(quantity)}`,
    nano: `${quantity.nano}`,
  };
}

// Kubernetes keeps dividing beyond its largest suffix and then writes none: 1000E becomes 1.
function asKubernetesWrites(canonical: string): string {
  const [, digits = '', binary] = /^(-?\d+)E(i?)$/.exec(canonical) ?? [];
  const factor = binary === 'i' ? 1024n : 1000n;
  let amount = BigInt(digits);
  if (amount === 0n || amount % factor !== 0n) return canonical;
  while (amount % factor === 0n) amount /= factor;
  return `${amount}`;
}

const EDGE_CASES = [
  '|0|-0|+|-|.|-.|..|1.|.5|+.5|1..5|1.2.3|00|007|0.5|1.5Gi|m|Ki|Ti|Pi|Ei|.Pi|-Ei|0Ei|E|e3|e-9|e-10|.e-10',
  '0e-10|-e-10|1024Mi|1023Mi|0.5Ki|0.0001Ki|1.1Ki|0.9765625Ki|1025.5Ki|8Ei|-8Ei|9Ei|7.9999999Ei|1e3|1E3|1E|1e|1e+3|1e-3',
  '1E+|1e0|12e6|100e1|1e1000|1e-1000|1Ee3|1n|0.1n|-0.1n|1.0000000001|0.0000000001|999999999999999999.9999999999',
  '1000E|999999E|9223372036854775807|9223372036854775808|-9223372036854775808|9223372036854775808Ki|99999999999Ki',
  '100000000000Ki|12345678Mi|123456789Mi|99999Gi|100000Gi|99Ti|100Ti| 1|1 |1 Gi|0x10|1_000|1,5|NaN|Infinity|1GB',
  '1Gib|1kB|１|1µ|--1|+-1|1000000000000000000|123456789012345678|1234567890123456789|.123456789012345678|1k|1K',
].flatMap((row) => row.split('|'));

testAgreement('quantities', {
  share: 0.4,
  inputs: quantityText,
  edgeCases: EDGE_CASES,
  request: (text) => ({ kind: 'quantity', text }),
  ours: (text) => toResponse(parseQuantity(text), describe),
});
