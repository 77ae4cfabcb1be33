// SPDX-License-Identifier: Apache-2.0
// For tests: a validator for the part of JSON Schema that our schema uses.
import { isMapping } from '../config-path.ts';

type Schema = Readonly<Record<string, unknown>>;

/** Paths at which the value violates the schema; empty when it is valid. */
export function findSchemaViolations(
  schema: unknown,
  value: unknown,
  path = '$',
): readonly string[] {
  if (!isMapping(schema)) return [`${path}: no schema`];
  const forms = schema['anyOf'];
  if (Array.isArray(forms)) {
    return forms.some((form) => findSchemaViolations(form, value, path).length === 0)
      ? []
      : [`${path}: no form fits`];
  }
  return [
    ...scalarViolations(schema, value, path),
    ...(isMapping(value) ? mappingViolations(schema, value, path) : []),
    ...(Array.isArray(value)
      ? value.flatMap((item: unknown, index) =>
          findSchemaViolations(schema['items'], item, `${path}[${index}]`),
        )
      : []),
  ];
}

type Keyword = (wanted: unknown, value: unknown) => boolean;

/** Checks per keyword. A keyword that does not apply to the type of the value passes. */
const KEYWORDS: Readonly<Record<string, Keyword>> = {
  type: (wanted, value) =>
    [wanted].flat().some((name) => typeof name === 'string' && isOfType(value, name)),
  pattern: (wanted, value) =>
    typeof wanted !== 'string' || typeof value !== 'string' || new RegExp(wanted, 'u').test(value),
  enum: (wanted, value) => Array.isArray(wanted) && wanted.includes(value),
  const: (wanted, value) => wanted === value,
  minimum: (wanted, value) => typeof value !== 'number' || value >= Number(wanted),
  maximum: (wanted, value) => typeof value !== 'number' || value <= Number(wanted),
};

function scalarViolations(schema: Schema, value: unknown, path: string): readonly string[] {
  return Object.entries(KEYWORDS)
    .filter(([keyword, fits]) => schema[keyword] !== undefined && !fits(schema[keyword], value))
    .map(([keyword]) => `${path}: ${keyword}`);
}

function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case 'object':
      return isMapping(value);
    case 'array':
      return Array.isArray(value);
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

function mappingViolations(
  schema: Schema,
  value: Record<string, unknown>,
  path: string,
): readonly string[] {
  const properties = isMapping(schema['properties']) ? schema['properties'] : {};
  const required: readonly unknown[] = Array.isArray(schema['required']) ? schema['required'] : [];
  const others = schema['additionalProperties'];
  return [
    ...required
      .filter((key) => !Object.hasOwn(value, String(key)))
      .map((key) => `${path}: lacks ${String(key)}`),
    ...Object.entries(value).flatMap(([key, child]) => {
      if (Object.hasOwn(properties, key))
        return findSchemaViolations(properties[key], child, `${path}.${key}`);
      return isMapping(others)
        ? findSchemaViolations(others, child, `${path}.${key}`)
        : [`${path}.${key}: unknown`];
    }),
  ];
}
