// SPDX-License-Identifier: Apache-2.0
// What a value is, in the words of somebody who writes YAML.
import { quoteKey } from '../secrets/detect-secret.ts';

/** Told apart from what was expected, also where both are numbers or mappings. */
export function describeKind(value: unknown, expected: string): string {
  if (typeof value === 'number' && expected.includes('number')) return describeNumber(value);
  const isKeyed = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (isKeyed && expected.includes('mapping')) return describeMapping(value);
  return describePlainKind(value);
}

function describePlainKind(value: unknown): string {
  if (value === null) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  switch (typeof value) {
    case 'string':
      return 'text';
    case 'number':
      return 'a number';
    case 'boolean':
      return 'true or false';
    case 'object':
      return 'a mapping';
    case 'bigint':
    case 'function':
    case 'symbol':
    case 'undefined':
      return 'another type';
  }
}

function describeNumber(value: number): string {
  if (Number.isNaN(value)) return '.nan';
  if (!Number.isFinite(value)) return '.inf';
  return Number.isInteger(value) ? 'a number' : 'a fraction';
}

const MAX_KEYS_NAMED = 4;

/** Where a mapping was right and its keys were not, the keys tell more than the kind. */
function describeMapping(value: object): string {
  const keys = Object.keys(value);
  if (keys.length === 0) return 'an empty mapping';
  const named = keys.slice(0, MAX_KEYS_NAMED).map(quoteKey).join(', ');
  return `a mapping with ${named}${keys.length > MAX_KEYS_NAMED ? ', …' : ''}`;
}

const EXPECTED: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'a mapping',
  record: 'a mapping',
  array: 'a list',
  text: 'text',
  'text, number or boolean': 'text, a number or true/false',
};

/** The same words for what a schema expects; the name of one of our own types as it is. */
export function describeExpectedKind(expected: string): string {
  if (Object.hasOwn(EXPECTED, expected)) return EXPECTED[expected] ?? expected;
  return `${/^([aeio]|https|SSH)/i.test(expected) ? 'an' : 'a'} ${expected}`;
}
