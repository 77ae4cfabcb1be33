// SPDX-License-Identifier: Apache-2.0
// The JSON Schema for editors: completion, descriptions and validation.
import { schemaTree } from '../schema/tree.ts';

export const JSON_SCHEMA_ID = 'https://pvescaler.dev/schemas/v1alpha1/config.schema.json';

/** The text of docs/reference/config.schema.json. */
export function renderJsonSchema(): string {
  const { $schema, ...rest } = removeInternalKeywords(schemaTree());
  const schema = {
    $schema: $schema ?? 'https://json-schema.org/draft/2020-12/schema',
    $id: JSON_SCHEMA_ID,
    title: 'pvescaler config',
    ...rest,
  };
  return `${JSON.stringify(schema, undefined, 2)}\n`;
}

/** Removes our `x-` keywords, because strict validators refuse unknown keywords. */
function removeInternalKeywords(node: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(node)
      .filter(([key]) => !key.startsWith('x-'))
      .map(([key, value]: [string, unknown]) => [key, convertSchemaValue(value, key)]),
  );
}

function convertSchemaValue(value: unknown, key: string): unknown {
  // Examples and defaults are data, not schemas.
  if (key === 'default' || key === 'examples' || key === 'enum') return value;
  if (Array.isArray(value)) return value.map((item: unknown) => convertSchemaValue(item, ''));
  if (typeof value !== 'object' || value === null) return value;
  return key === 'properties' ? mapProperties(value) : removeInternalKeywords(value);
}

// A property may have any name, including `x-…` or `default`.
function mapProperties(properties: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(properties).map(([name, node]: [string, unknown]) => [
      name,
      convertSchemaValue(node, ''),
    ]),
  );
}
