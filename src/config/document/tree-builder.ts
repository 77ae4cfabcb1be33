// SPDX-License-Identifier: Apache-2.0
// Walks a parsed YAML document once and writes down each value and its position.
import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  type Scalar,
  type YAMLMap,
} from 'yaml';
import { type ConfigPath, isMapping, pathKey } from '../config-path.ts';
import { quotedKey } from '../secrets/looks-secret.ts';
import type { DocumentProblem, NodePlace, ReadDocument } from './document.ts';

interface Position {
  readonly line: number;
  readonly col: number;
}

const MOST_VALUES = 100_000;
const DEEPEST = 64;
const START: Position = { line: 1, col: 1 };

export class TreeBuilder {
  readonly #document: Document;
  readonly #position: (offset: number) => Position;
  readonly #places = new Map<string, NodePlace>();
  readonly #problems: DocumentProblem[] = [];
  #values = 0;
  #isTooLarge = false;

  constructor(document: Document, position: (offset: number) => Position) {
    this.#document = document;
    this.#position = position;
  }

  build(): ReadDocument {
    const contents = this.#document.contents;
    const tree = this.#convert(contents, []);
    // An empty file says nothing: every value comes from elsewhere.
    const root = tree === null && this.#problems.length === 0 ? {} : tree;
    if (!isMapping(root) && this.#problems.length === 0) {
      this.#report(contents, "a config file is a mapping: lines of the form 'key: value'");
    }
    return {
      tree: isMapping(root) ? root : undefined,
      places: this.#places,
      problems: this.#problems,
    };
  }

  #convert(node: unknown, path: ConfigPath): unknown {
    this.#values += 1;
    if (this.#values > MOST_VALUES || path.length > DEEPEST) return this.#tooLarge(node);
    if (isAlias(node)) return this.#convertAlias(node, path);
    const at = this.#positionOf(node);
    const known = this.#places.get(pathKey(path));
    this.#places.set(pathKey(path), { ...known, value: at });
    if (isMap(node)) return this.#convertMap(node, path);
    if (isSeq(node)) return node.items.map((item, index) => this.#convert(item, [...path, index]));
    return isScalar(node) ? scalarValue(node) : null;
  }

  /** Said once; nothing more is converted then. */
  #tooLarge(node: unknown): null {
    if (!this.#isTooLarge) this.#report(node, 'aliases or nesting make the file too large');
    this.#isTooLarge = true;
    return null;
  }

  #convertAlias(alias: Alias, path: ConfigPath): unknown {
    const target = alias.resolve(this.#document);
    if (target !== undefined) {
      const value = this.#convert(target, path);
      // What stands here is the alias; what is inside it stands at the anchor.
      const known = this.#places.get(pathKey(path));
      this.#places.set(pathKey(path), { ...known, value: this.#positionOf(alias) });
      return value;
    }
    this.#report(alias, 'this alias (*name) has no anchor (&name) before it');
    return null;
  }

  #convertMap(map: YAMLMap, path: ConfigPath): Record<string, unknown> {
    const own = new Map<string, unknown>();
    const seen = new Map<string, Position>();
    for (const pair of map.items) {
      const name = this.#keyName(pair);
      if (name === undefined || this.#isMerge(pair)) continue;
      const at = this.#positionOf(pair.key);
      const first = seen.get(name);
      if (first !== undefined) {
        this.#report(pair.key, `key ${quotedKey(name)} appears twice, first in line ${first.line}`);
        continue;
      }
      seen.set(name, at);
      const childPath = [...path, name];
      this.#places.set(pathKey(childPath), { key: at, value: at });
      own.set(name, this.#convert(pair.value, childPath));
    }
    return fromEntries(this.#withMerged(map, path, own));
  }

  /** `<<: *base`: what the base has and the mapping itself has not. */
  #withMerged(map: YAMLMap, path: ConfigPath, own: Map<string, unknown>): Map<string, unknown> {
    for (const pair of map.items.filter((item) => this.#isMerge(item))) {
      const source = this.#resolved(pair.value);
      for (const base of isSeq(source) ? source.items : [source]) {
        this.#mergeFrom(this.#resolved(base), { path, into: own, at: pair.key });
      }
    }
    return own;
  }

  #mergeFrom(
    base: unknown,
    target: {
      readonly path: ConfigPath;
      readonly into: Map<string, unknown>;
      readonly at: unknown;
    },
  ): void {
    if (!isMap(base)) {
      this.#report(target.at, "'<<' takes an alias of a mapping, or a list of them");
      return;
    }
    if (target.path.length > DEEPEST) return;
    // Values that are overridden are converted for nothing but positions: only the missing ones are.
    const missing = base.items.filter((pair) => {
      const name = this.#keyName(pair);
      return name !== undefined && !this.#isMerge(pair) && !target.into.has(name);
    });
    for (const pair of missing) {
      const name = this.#keyName(pair) ?? '';
      const childPath = [...target.path, name];
      const at = this.#positionOf(pair.key);
      this.#places.set(pathKey(childPath), { key: at, value: at });
      target.into.set(name, this.#convert(pair.value, childPath));
    }
    for (const pair of base.items.filter((item) => this.#isMerge(item))) {
      this.#values += 1;
      if (this.#values > MOST_VALUES) return;
      const inner = this.#resolved(pair.value);
      for (const item of isSeq(inner) ? inner.items : [inner]) {
        this.#mergeFrom(this.#resolved(item), target);
      }
    }
  }

  #resolved(node: unknown): unknown {
    return isAlias(node) ? node.resolve(this.#document) : node;
  }

  #isMerge({ key }: Pair): boolean {
    return isScalar(key) && key.value === '<<' && key.type === 'PLAIN';
  }

  #keyName({ key }: Pair): string | undefined {
    const node = this.#resolved(key);
    if (isScalar(node) && node.value !== null) return node.source ?? '';
    this.#report(key, 'a key must be plain text');
    return undefined;
  }

  #positionOf(node: unknown): Position {
    const range = isNode(node) ? node.range : undefined;
    return range === undefined || range === null ? START : this.#position(range[0]);
  }

  #report(node: unknown, message: string): void {
    this.#problems.push({ ...this.#positionOf(node), message });
  }
}

/** A tag that nobody knows makes text of everything; it is told, and the value read as if it were not there. */
function scalarValue({ value, type, tag }: Scalar): unknown {
  if (typeof value !== 'string' || type !== 'PLAIN' || tag?.startsWith('!') !== true) return value;
  if (/^(true|false)$/i.test(value)) return value.toLowerCase() === 'true';
  if (/^(null|~|)$/i.test(value)) return null;
  return /^[+-]?\d+(\.\d+)?$/.test(value) ? Number(value) : value;
}

function isNode(value: unknown): value is Node {
  return isScalar(value) || isMap(value) || isSeq(value) || isAlias(value);
}

// Not by assignment: a key may be named `__proto__`.
function fromEntries(entries: ReadonlyMap<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(entries);
}
