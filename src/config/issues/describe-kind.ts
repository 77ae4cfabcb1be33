// SPDX-License-Identifier: Apache-2.0
// Describes the type of a value in YAML terms.
import { quoteKey } from '../secrets/detect-secret.ts';

/** Distinguishes the value from the expected type, also when both are numbers or mappings. */
export function describeKind(value: unknown, expected: string): string {
  if (typeof value === 'number' && expected.includes('number')) return describeNumber(value);
  const isKeyed = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (isKeyed && expected.includes('mapping')) return describeMapping(value);
  return describePlainKind(value);
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  boolean: 'true or false',
  object: 'a mapping',
};

function describePlainKind(value: unknown): string {
  if (value === null) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  return KINDS[typeof value] ?? 'another type';
}

function describeNumber(value: number): string {
  if (Number.isNaN(value)) return '.nan';
  if (!Number.isFinite(value)) return '.inf';
  return Number.isInteger(value) ? 'a number' : 'a fraction';
}

const MAX_KEYS_NAMED = 4;

/** When a mapping was expected but its keys are wrong, names the keys. */
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

/** Describes the expected type in the same terms; names of our own types are used unchanged. */
export function describeExpectedKind(expected: string): string {
  if (Object.hasOwn(EXPECTED, expected)) return EXPECTED[expected] ?? expected;
  return `${/^([aeio]|https|SSH)/i.test(expected) ? 'an' : 'a'} ${expected}`;
}
