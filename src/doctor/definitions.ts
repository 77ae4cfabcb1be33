// SPDX-License-Identifier: Apache-2.0
// Compares the schema of a kind that the API server has with the one that this release expects.

const MAX_NAMED = 5;

/** What a definition of an older release lacks; undefined if it lacks nothing. */
// oxlint-disable-next-line max-params -- a kind and its two schemas
export function describeOutdated(
  kind: string,
  expected: unknown,
  served: unknown,
): string | undefined {
  const missing = listMissing(expected, served);
  if (missing.length === 0) return undefined;
  const named = missing.slice(0, MAX_NAMED).join(', ');
  const more = missing.length > MAX_NAMED ? ` and ${missing.length - MAX_NAMED} more` : '';
  return `the definition of ${kind} is of an older release: it does not know ${named}${more}`;
}

/** Paths of the fields and values that only `expected` has. A newer definition may have more: it is installed first. */
function listMissing(expected: unknown, served: unknown, path = ''): readonly string[] {
  const fields = fieldsOf(served);
  const values = enumOf(served);
  return [
    ...enumOf(expected)
      .filter((value) => values.length > 0 && !values.includes(value))
      .map((value) => `${path} ${String(value)}`),
    ...Object.entries(fieldsOf(expected)).flatMap(([name, schema]) => {
      const at = path === '' ? name : `${path}.${name}`;
      return fields[name] === undefined ? [at] : listMissing(schema, fields[name], at);
    }),
  ];
}

/** Of a mapping, of the entries of a list, or of the values of a mapping with any keys. */
function fieldsOf(schema: unknown): Readonly<Record<string, unknown>> {
  const { properties, items, additionalProperties } = asRecord(schema);
  return {
    ...asRecord(properties),
    ...(items !== undefined && { '[]': items }),
    ...(additionalProperties !== undefined && { '*': additionalProperties }),
  };
}

function enumOf(schema: unknown): readonly unknown[] {
  const values = asRecord(schema)['enum'];
  return Array.isArray(values) ? values : [];
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
