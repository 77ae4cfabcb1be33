// SPDX-License-Identifier: Apache-2.0
// Names that other systems give to our keys: who comes from one of them writes `node_groups` out of habit.
import { type SchemaNode, schemaTree, withForms } from './tree.ts';

let table: ReadonlyMap<string, string> | undefined;

/** Our key, as a path without indices, for the last word of another system's key. */
export function homeOf(foreignKey: string): string | undefined {
  table ??= new Map([...entriesOf(schemaTree(), '')].toReversed());
  return table.get(foreignKey);
}

function* entriesOf(node: SchemaNode, path: string): Generator<readonly [string, string]> {
  for (const foreign of Object.values(node['x-replaces'] ?? {}).flat()) {
    const word = lastWord(foreign);
    if (word !== undefined) yield [word, path];
  }
  for (const form of withForms(node)) {
    for (const [key, child] of Object.entries(form.properties ?? {})) {
      yield* entriesOf(child, path === '' ? key : `${path}.${key}`);
    }
    if (form.items !== undefined) yield* entriesOf(form.items, `${path}[]`);
    if (typeof form.additionalProperties === 'object') {
      yield* entriesOf(form.additionalProperties, `${path}.<name>`);
    }
  }
}

/** `node_groups[].cores` → `cores`; variables and flags are no keys of a file. */
function lastWord(foreign: string): string | undefined {
  return /^[a-z][\w.[\]]*$/i.test(foreign) && !/^[A-Z0-9_]+$/.test(foreign)
    ? foreign.replace(/\[\]$/, '').replace(/^.*\./, '')
    : undefined;
}
