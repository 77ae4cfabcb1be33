// SPDX-License-Identifier: Apache-2.0
// The schema for editors: completion, descriptions and red underlines while one writes the file.
import { schemaTree } from '../schema/tree.ts';

export const JSON_SCHEMA_ID = 'https://pvescaler.dev/schemas/v1alpha1/config.schema.json';

/** Pretty-printed, with a line break at the end: the text of docs/reference/config.schema.json. */
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

/** Without our own `x-` facts: strict validators refuse keywords they do not know. */
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

// A property may be named like anything, also `x-…` or `default`.
function mapProperties(properties: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(properties).map(([name, node]: [string, unknown]) => [
      name,
      convertSchemaValue(node, ''),
    ]),
  );
}
