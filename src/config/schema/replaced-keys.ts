// SPDX-License-Identifier: Apache-2.0
// Maps keys of other systems to our keys, for users who write `node_groups` out of habit.
import { expandForms, type SchemaNode, schemaTree } from './tree.ts';

let table: ReadonlyMap<string, string> | undefined;

/** The path of our key, without indexes, for the last part of a key of another system. */
export function findReplacementKey(foreignKey: string): string | undefined {
  table ??= new Map([...replacementEntries(schemaTree(), '')].toReversed());
  return table.get(foreignKey);
}

function* replacementEntries(node: SchemaNode, path: string): Generator<readonly [string, string]> {
  for (const foreign of Object.values(node['x-replaces'] ?? {}).flat()) {
    const word = lastKeyName(foreign);
    if (word !== undefined) yield [word, path];
  }
  for (const form of expandForms(node)) {
    for (const [key, child] of Object.entries(form.properties ?? {})) {
      yield* replacementEntries(child, path === '' ? key : `${path}.${key}`);
    }
    if (form.items !== undefined) yield* replacementEntries(form.items, `${path}[]`);
    if (typeof form.additionalProperties === 'object') {
      yield* replacementEntries(form.additionalProperties, `${path}.<name>`);
    }
  }
}

/** `node_groups[].cores` → `cores`; undefined for variables and flags. */
function lastKeyName(foreign: string): string | undefined {
  return /^[a-z][\w.[\]]*$/i.test(foreign) && !/^[A-Z0-9_]+$/.test(foreign)
    ? foreign.replace(/\[\]$/, '').replace(/^.*\./, '')
    : undefined;
}
