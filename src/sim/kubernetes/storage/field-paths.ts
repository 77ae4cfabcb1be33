// SPDX-License-Identifier: Apache-2.0
// The fields of an object as paths, and as a `fieldsV1` tree. Each list counts as one field; a real API server tracks
// the items of some lists separately.
import { isObject, type Json, type JsonObject } from './objects.ts';

/** Keys joined by a line break, which no key contains. */
export type FieldPath = string;

const SEPARATOR = '\n';
/** Fields without an owner: set by the server, or part of the object's address. */
const UNMANAGED_FIELDS = new Set(
  ['name', 'namespace', 'uid', 'resourceVersion', 'creationTimestamp', 'deletionTimestamp']
    .concat(['managedFields', 'generation'])
    .map((field) => ['metadata', field].join(SEPARATOR))
    .concat(['apiVersion', 'kind']),
);

/** Every field that a manager can own, by path. */
export function listFields(object: JsonObject): ReadonlyMap<FieldPath, Json> {
  const found = new Map<FieldPath, Json>();
  collectFields(object, [], found);
  return found;
}

function collectFields(value: Json, keys: readonly string[], found: Map<FieldPath, Json>): void {
  const path = keys.join(SEPARATOR);
  if (UNMANAGED_FIELDS.has(path)) return;
  if (!isObject(value)) return void found.set(path, value);
  const entries = Object.entries(value);
  // An empty map is a field. Top-level objects such as metadata and spec are not fields.
  if (entries.length === 0 && keys.length > 1) found.set(path, value);
  for (const [key, inner] of entries) {
    if (inner !== undefined) collectFields(inner, [...keys, key], found);
  }
}

/** The form used in conflict messages: `.metadata.labels.tier`. */
export function formatPath(path: FieldPath): string {
  return path
    .split(SEPARATOR)
    .map((key) => `.${key}`)
    .join('');
}

export function formatFieldsV1(paths: Iterable<FieldPath>): JsonObject {
  let tree: JsonObject = {};
  for (const path of [...paths].sort()) tree = addPath(tree, path.split(SEPARATOR));
  return tree;
}

function addPath(tree: JsonObject, [key, ...rest]: readonly string[]): JsonObject {
  if (key === undefined) return tree;
  const branch = tree[`f:${key}`];
  return { ...tree, [`f:${key}`]: addPath(isObject(branch) ? branch : {}, rest) };
}

export function parseFieldsV1(
  tree: JsonObject,
  keys: readonly string[] = [],
): ReadonlySet<FieldPath> {
  const entries = Object.entries(tree).filter(([key]) => key.startsWith('f:'));
  if (entries.length === 0) return new Set(keys.length > 0 ? [keys.join(SEPARATOR)] : []);
  return new Set(
    entries.flatMap(([key, branch]) => [
      ...parseFieldsV1(isObject(branch) ? branch : {}, [...keys, key.slice(2)]),
    ]),
  );
}

export function withField(object: JsonObject, path: FieldPath, value: Json): JsonObject {
  return setAt(object, path.split(SEPARATOR), value);
}

function setAt(
  object: JsonObject,
  [key = '', ...rest]: readonly string[],
  value: Json,
): JsonObject {
  if (rest.length === 0) return { ...object, [key]: value };
  const inner = object[key];
  return { ...object, [key]: setAt(isObject(inner) ? inner : {}, rest, value) };
}

/** Also removes maps that become empty. */
export function withoutField(object: JsonObject, path: FieldPath): JsonObject {
  return removeAt(object, path.split(SEPARATOR));
}

function removeAt(object: JsonObject, [key = '', ...rest]: readonly string[]): JsonObject {
  const { [key]: inner, ...others } = object;
  if (rest.length === 0 || !isObject(inner)) return others;
  const left = removeAt(inner, rest);
  return Object.keys(left).length === 0 ? others : { ...object, [key]: left };
}
