// SPDX-License-Identifier: Apache-2.0
// What a value is, in the words of somebody who writes YAML.

export function kindOfValue(value: unknown): string {
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
    default:
      return 'something else';
  }
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
};

/** The same words for what a schema expects; the name of one of our own types as it is. */
export function expectedKind(expected: string): string {
  if (Object.hasOwn(EXPECTED, expected)) return EXPECTED[expected] ?? expected;
  return `${/^([aeio]|https|SSH)/i.test(expected) ? 'an' : 'a'} ${expected}`;
}
