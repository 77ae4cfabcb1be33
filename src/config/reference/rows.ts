// SPDX-License-Identifier: Apache-2.0
// The schema as a flat list of keys, in the order of the file.
import { expandForms, type SchemaNode } from '../schema/tree.ts';

const SECRET_REFERENCE = 'Secret reference';

export interface ReferenceRow {
  /** `network.interfaces[].model`, below the section. */
  readonly key: string;
  readonly node: SchemaNode;
  readonly isRequired: boolean;
}

export function* referenceRows(node: SchemaNode, prefix: string): Generator<ReferenceRow> {
  const seen = new Set<string>();
  for (const form of expandForms(node)) {
    for (const row of formRows(form, prefix)) {
      // Forms share keys (`pool`, `dns`); each is listed once.
      if (!seen.has(row.key)) yield row;
      seen.add(row.key);
    }
  }
}

function* formRows(node: SchemaNode, prefix: string): Generator<ReferenceRow> {
  for (const [name, child] of Object.entries(node.properties ?? {})) {
    const key = prefix === '' ? name : `${prefix}.${name}`;
    yield { key, node: child, isRequired: node.required?.includes(name) ?? false };
    // Secret references are explained once, at the top of the page.
    if (child['x-type'] !== SECRET_REFERENCE) yield* referenceRows(child, key);
  }
  if (node.items !== undefined) yield* referenceRows(node.items, `${prefix}[]`);
  if (typeof node.additionalProperties === 'object') {
    yield* referenceRows(node.additionalProperties, prefix === '' ? '<name>' : `${prefix}.<name>`);
  }
}

/** Type of a value in the reference page. */
export function formatType(node: SchemaNode): string {
  const forms = node['x-forms'];
  if (forms !== undefined) return forms;
  if (node.enum !== undefined) return node.enum.map((value) => `\`${String(value)}\``).join(', ');
  if (node.const !== undefined)
    return `\`${typeof node.const === 'string' ? node.const : JSON.stringify(node.const)}\``;
  if (node['x-type'] !== undefined) return node['x-type'];
  if (node.items !== undefined) return `list of ${formatType(node.items)}`;
  if (typeof node.additionalProperties === 'object') {
    return `mapping to ${formatType(node.additionalProperties)}`;
  }
  return PLAIN_TYPES[String(node.type)] ?? 'mapping';
}

const PLAIN_TYPES: Readonly<Record<string, string>> = {
  string: 'text',
  integer: 'whole number',
  number: 'number',
  boolean: 'boolean',
};
