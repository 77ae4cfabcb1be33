// SPDX-License-Identifier: Apache-2.0
// Walks a parsed YAML document once and collects each value and its position.
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
import { type ConfigPath, configPathKey, isMapping } from '../config-path.ts';
import { quoteKey } from '../secrets/detect-secret.ts';
import type { NodeLocation, ParsedDocument, SyntaxProblem } from './parsed-document.ts';
import { UNRESOLVED_ALIAS } from './syntax-message.ts';

interface LinePosition {
  readonly line: number;
  readonly col: number;
}

const MAX_VALUES = 100_000;
const MAX_DEPTH = 64;
const START: LinePosition = { line: 1, col: 1 };

export class ConfigTreeBuilder {
  readonly #document: Document;
  readonly #position: (offset: number) => LinePosition;
  readonly #locations = new Map<string, NodeLocation>();
  readonly #problems: SyntaxProblem[] = [];
  #values = 0;
  #isTooLarge = false;

  constructor(document: Document, position: (offset: number) => LinePosition) {
    this.#document = document;
    this.#position = position;
  }

  build(): ParsedDocument {
    const contents = this.#document.contents;
    const tree = this.#convert(contents, []);
    // An empty file is valid: all values come from environment, flags and defaults.
    const root = tree === null && this.#problems.length === 0 ? {} : tree;
    if (!isMapping(root) && this.#problems.length === 0) {
      this.#report(contents, "a config file must be a mapping: lines of the form 'key: value'");
    }
    return {
      tree: isMapping(root) ? root : undefined,
      locations: this.#locations,
      problems: this.#problems,
    };
  }

  #convert(node: unknown, path: ConfigPath): unknown {
    this.#values += 1;
    if (this.#values > MAX_VALUES || path.length > MAX_DEPTH) return this.#reportTooLarge(node);
    if (isAlias(node)) return this.#convertAlias(node, path);
    const at = this.#positionOf(node);
    const known = this.#locations.get(configPathKey(path));
    this.#locations.set(configPathKey(path), { ...known, value: at });
    if (isMap(node)) return this.#convertMap(node, path);
    if (isSeq(node)) return node.items.map((item, index) => this.#convert(item, [...path, index]));
    return isScalar(node) ? scalarValue(node) : null;
  }

  /** Reported once. */
  #reportTooLarge(node: unknown): null {
    if (!this.#isTooLarge)
      this.#report(node, 'the file has too many values or is nested too deeply');
    this.#isTooLarge = true;
    return null;
  }

  #convertAlias(alias: Alias, path: ConfigPath): unknown {
    const target = alias.resolve(this.#document);
    if (target !== undefined) {
      const value = this.#convert(target, path);
      // The location of the value is the alias; its children keep their locations at the anchor.
      const known = this.#locations.get(configPathKey(path));
      this.#locations.set(configPathKey(path), { ...known, value: this.#positionOf(alias) });
      return value;
    }
    this.#report(alias, UNRESOLVED_ALIAS);
    return null;
  }

  #convertMap(map: YAMLMap, path: ConfigPath): Record<string, unknown> {
    const own = new Map<string, unknown>();
    const seen = new Map<string, LinePosition>();
    for (const pair of map.items) {
      const name = this.#readKeyName(pair);
      if (name === undefined || this.#isMergeKey(pair)) continue;
      const at = this.#positionOf(pair.key);
      const first = seen.get(name);
      if (first !== undefined) {
        this.#report(
          pair.key,
          `key ${quoteKey(name)} is a duplicate; it first appears in line ${first.line}`,
        );
        continue;
      }
      seen.set(name, at);
      const childPath = [...path, name];
      this.#locations.set(configPathKey(childPath), { key: at, value: at });
      own.set(name, this.#convert(pair.value, childPath));
    }
    return fromEntries(this.#applyMergeKeys(map, path, own));
  }

  /** `<<: *base` adds the keys of the base that the mapping itself does not have. */
  #applyMergeKeys(map: YAMLMap, path: ConfigPath, own: Map<string, unknown>): Map<string, unknown> {
    for (const pair of map.items.filter((item) => this.#isMergeKey(item))) {
      const source = this.#resolveAlias(pair.value);
      for (const base of isSeq(source) ? source.items : [source]) {
        this.#mergeFrom(this.#resolveAlias(base), { path, into: own, at: pair.key });
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
      this.#report(target.at, "'<<' needs an alias of a mapping, or a list of such aliases");
      return;
    }
    if (target.path.length > MAX_DEPTH) return;
    // Only keys that the mapping does not have; the others would add only wrong positions.
    const missing = base.items.filter((pair) => {
      const name = this.#readKeyName(pair);
      return name !== undefined && !this.#isMergeKey(pair) && !target.into.has(name);
    });
    for (const pair of missing) {
      const name = this.#readKeyName(pair) ?? '';
      const childPath = [...target.path, name];
      const at = this.#positionOf(pair.key);
      this.#locations.set(configPathKey(childPath), { key: at, value: at });
      target.into.set(name, this.#convert(pair.value, childPath));
    }
    for (const pair of base.items.filter((item) => this.#isMergeKey(item))) {
      this.#values += 1;
      if (this.#values > MAX_VALUES) return;
      const inner = this.#resolveAlias(pair.value);
      for (const item of isSeq(inner) ? inner.items : [inner]) {
        this.#mergeFrom(this.#resolveAlias(item), target);
      }
    }
  }

  #resolveAlias(node: unknown): unknown {
    return isAlias(node) ? node.resolve(this.#document) : node;
  }

  #isMergeKey({ key }: Pair): boolean {
    return isScalar(key) && key.value === '<<' && key.type === 'PLAIN';
  }

  #readKeyName({ key }: Pair): string | undefined {
    const node = this.#resolveAlias(key);
    if (isScalar(node) && node.value !== null) return node.source ?? '';
    this.#report(key, 'a key must be plain text');
    return undefined;
  }

  #positionOf(node: unknown): LinePosition {
    const range = isNode(node) ? node.range : undefined;
    return range === undefined || range === null ? START : this.#position(range[0]);
  }

  #report(node: unknown, message: string): void {
    this.#problems.push({ ...this.#positionOf(node), message });
  }
}

/**
 * The library returns text for a value with an unknown tag. The tag is reported, and the value is read as if
 * it had none.
 */
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
