// SPDX-License-Identifier: Apache-2.0
// Specs that the schema of the widgets refuses, and the responses of a real API server.

const UNCHECKED_RULES = {
  reason: 'FieldValueInvalid',
  message:
    'Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
  field: '<nil>',
};
const BLOCKING = [
  'FieldValueRequired',
  'FieldValueTypeInvalid',
  'FieldValueNotSupported',
  'FieldValueTooLong',
  'FieldValueTooMany',
];

/** The response to an invalid widget. */
export function invalid(field: string, reason: string, message: string): object {
  const first = { reason, message, field };
  const causes = BLOCKING.includes(reason) ? [first, UNCHECKED_RULES] : [first];
  const texts = causes.map((one) => `${one.field}: ${one.message}`);
  const text = texts.length === 1 ? texts.join() : `[${texts.join(', ')}]`;
  return {
    status: 422,
    reason: 'Invalid',
    message: `Widget.example.com "w1" is invalid: ${text}`,
    causes: sortCauses(causes),
  };
}

/** A real API server sends causes in any order. */
export function sortCauses(causes: readonly object[]): readonly object[] {
  return causes
    .map((one) => [JSON.stringify(Object.entries(one).toSorted()), one] as const)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([, cause]) => cause);
}

export const INVALID_SPECS: readonly (readonly [spec: object, response: object])[] = [
  [{}, invalid('spec.size', 'FieldValueRequired', 'Required value')],
  [{ size: null }, invalid('spec.size', 'FieldValueRequired', 'Required value')],
  [
    { size: 'big' },
    invalid(
      'spec.size',
      'FieldValueNotSupported',
      'Unsupported value: "big": supported values: "small", "large"',
    ),
  ],
  [
    { replicas: 11 },
    invalid(
      'spec.replicas',
      'FieldValueInvalid',
      'Invalid value: 11: spec.replicas in body should be less than or equal to 10',
    ),
  ],
  [
    { code: 'ABC' },
    invalid(
      'spec.code',
      'FieldValueInvalid',
      `Invalid value: "ABC": spec.code in body should match '^[a-z]+$'`,
    ),
  ],
  [
    { code: 'a' },
    invalid(
      'spec.code',
      'FieldValueInvalid',
      'Invalid value: "a": spec.code in body should be at least 2 chars long',
    ),
  ],
  [
    { code: 'abcdefgh' },
    invalid('spec.code', 'FieldValueTooLong', 'Too long: may not be more than 5 bytes'),
  ],
  [
    { labels: { a: 1 } },
    invalid(
      'spec.labels.a',
      'FieldValueTypeInvalid',
      'Invalid value: "integer": spec.labels.a in body must be of type string: "integer"',
    ),
  ],
  [
    { port: true },
    invalid(
      'spec.port',
      'FieldValueTypeInvalid',
      'Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"',
    ),
  ],
  [
    { at: 'x' },
    invalid(
      'spec.at',
      'FieldValueTypeInvalid',
      'Invalid value: "x": spec.at in body must be of type date-time: "x"',
    ),
  ],
  [
    { parts: [{ name: 'a' }, { name: 'b' }, { name: 'c' }] },
    invalid('spec.parts', 'FieldValueTooMany', 'Too many: 3: must have at most 2 items'),
  ],
  [
    { parts: [] },
    invalid(
      'spec.parts',
      'FieldValueInvalid',
      'Invalid value: 0: spec.parts in body should have at least 1 items',
    ),
  ],
  [{ parts: [{}] }, invalid('spec.parts[0].name', 'FieldValueRequired', 'Required value')],
];
