// SPDX-License-Identifier: Apache-2.0
// The fields of an object as paths, and as the tree in which Kubernetes writes them. Lists are taken as one value
// each; the real one knows some whose items are fields of their own.
import { isObject, type Json, type JsonObject } from './objects.ts';

/** Steps joined by a line break, which no key has. */
export type Path = string;

const STEP = '\n';
/** Nobody's: the server's own, or part of the address. */
const UNOWNED = new Set(
  ['name', 'namespace', 'uid', 'resourceVersion', 'creationTimestamp', 'deletionTimestamp']
    .concat(['managedFields', 'generation'])
    .map((field) => ['metadata', field].join(STEP))
    .concat(['apiVersion', 'kind']),
);

/** Every value that somebody may own, by its path. */
export function fieldsOf(object: JsonObject): ReadonlyMap<Path, Json> {
  const found = new Map<Path, Json>();
  collect(object, [], found);
  return found;
}

// oxlint-disable-next-line max-params -- what, where, and where to
function collect(value: Json, steps: readonly string[], found: Map<Path, Json>): void {
  const path = steps.join(STEP);
  if (UNOWNED.has(path)) return;
  if (!isObject(value)) return void found.set(path, value);
  const entries = Object.entries(value);
  // A map without entries is a value; metadata and spec are no maps, and nobody owns them.
  if (entries.length === 0 && steps.length > 1) found.set(path, value);
  for (const [key, inner] of entries) {
    if (inner !== undefined) collect(inner, [...steps, key], found);
  }
}

/** `.metadata.labels.tier`, as refusals name it. */
export function wordsOf(path: Path): string {
  return path
    .split(STEP)
    .map((step) => `.${step}`)
    .join('');
}

export function treeOf(paths: Iterable<Path>): JsonObject {
  let tree: JsonObject = {};
  for (const path of [...paths].sort()) tree = planted(tree, path.split(STEP));
  return tree;
}

function planted(tree: JsonObject, [step, ...rest]: readonly string[]): JsonObject {
  if (step === undefined) return tree;
  const branch = tree[`f:${step}`];
  return { ...tree, [`f:${step}`]: planted(isObject(branch) ? branch : {}, rest) };
}

export function pathsIn(tree: JsonObject, steps: readonly string[] = []): ReadonlySet<Path> {
  const entries = Object.entries(tree).filter(([key]) => key.startsWith('f:'));
  if (entries.length === 0) return new Set(steps.length > 0 ? [steps.join(STEP)] : []);
  return new Set(
    entries.flatMap(([key, branch]) => [
      ...pathsIn(isObject(branch) ? branch : {}, [...steps, key.slice(2)]),
    ]),
  );
}

export function withField(object: JsonObject, path: Path, value: Json): JsonObject {
  return put(object, path.split(STEP), value);
}

// oxlint-disable-next-line max-params -- what goes where
function put(object: JsonObject, [step = '', ...rest]: readonly string[], value: Json): JsonObject {
  if (rest.length === 0) return { ...object, [step]: value };
  const inner = object[step];
  return { ...object, [step]: put(isObject(inner) ? inner : {}, rest, value) };
}

/** A map that is left empty goes too. */
export function withoutField(object: JsonObject, path: Path): JsonObject {
  return taken(object, path.split(STEP));
}

function taken(object: JsonObject, [step = '', ...rest]: readonly string[]): JsonObject {
  const { [step]: inner, ...others } = object;
  if (rest.length === 0 || !isObject(inner)) return others;
  const left = taken(inner, rest);
  return Object.keys(left).length === 0 ? others : { ...object, [step]: left };
}
