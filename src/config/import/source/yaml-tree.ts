// SPDX-License-Identifier: Apache-2.0
// YAML text to a tree with places. Messages never quote the text: the line may hold a secret.

import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseAllDocuments,
  type Scalar,
  type YAMLMap,
} from 'yaml';
import type { Position } from '../result.ts';
import { childPath, type ScalarValue, type Tree, type Where } from './tree.ts';

export interface TextProblem extends Position {
  readonly message: string;
}

export type YamlTrees =
  | {
      readonly ok: true;
      /** One per document of the file. */
      readonly trees: readonly Tree[];
      /** Keys that stand twice in one mapping; the tree holds the later one. */
      readonly repeated: readonly Where[];
    }
  | { readonly ok: false; readonly problems: readonly TextProblem[] };

/** 1.1 is what Python's loader reads (`yes` is true, `010` is eight), 1.2 what most others do. */
export type YamlVersion = '1.1' | '1.2';

const NODES_AT_MOST = 20_000;
const DEPTH_AT_MOST = 50;

const SENTENCES: Readonly<Record<string, string>> = {
  BAD_INDENT: 'the indentation does not fit the lines around it',
  BAD_ALIAS: 'the alias (*name) has no anchor (&name) before it',
  BAD_DQ_ESCAPE: 'a double-quoted text has an escape that YAML does not know',
  BAD_SCALAR_START: 'a plain text cannot start with this character: put it in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a mapping cannot stand here: is a quote or an indentation missing?',
  DUPLICATE_KEY: 'the key stands twice in the same mapping',
  MISSING_CHAR: 'a quote, bracket, comma or colon is missing',
  MULTILINE_IMPLICIT_KEY: 'a key must stand on one line: is a colon missing?',
  TAB_AS_INDENT: 'a tab is used for indentation: use spaces',
  UNEXPECTED_TOKEN: 'something stands here that YAML does not expect',
};

class Unusable extends Error {
  readonly at: Position;
  constructor(message: string, at: Position = { line: 1, column: 1 }) {
    super(message);
    this.at = at;
  }
}

export function readYaml(text: string, version: YamlVersion): YamlTrees {
  const lines = new LineCounter();
  try {
    const documents = parseAllDocuments(text, {
      version,
      lineCounter: lines,
      prettyErrors: false,
      uniqueKeys: false,
      logLevel: 'silent',
    });
    return toTrees([...documents], lines);
  } catch (error) {
    // The parser recurses: text such as ten thousand brackets exhausts the stack.
    const { at, message } =
      error instanceof Unusable ? error : new Unusable('cannot be read as YAML');
    return { ok: false, problems: [{ ...at, message }] };
  }
}

function toTrees(documents: readonly Document.Parsed[], lines: LineCounter): YamlTrees {
  const problems = documents.flatMap((document) =>
    document.errors.map((error) => ({
      ...positionAt(lines, error.pos[0]),
      message: SENTENCES[error.code] ?? `is not valid YAML (${error.code})`,
    })),
  );
  if (problems.length > 0) return { ok: false, problems };
  const repeated: Where[] = [];
  const trees = documents.map((document) => new TreeBuilder({ document, lines, repeated }).build());
  return { ok: true, trees, repeated };
}

export function positionAt(lines: LineCounter, offset: number): Position {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(line, 1), column: Math.max(col, 1) };
}

interface Builder {
  readonly document: Document.Parsed;
  readonly lines: LineCounter;
  readonly repeated: Where[];
}

interface Spot {
  readonly path: string;
  readonly depth: number;
  /** The place of the key, which is what a person looks for; of the item in a list. */
  readonly at?: Position;
}

class TreeBuilder {
  readonly #from: Builder;
  #nodes = 0;

  constructor(from: Builder) {
    this.#from = from;
  }

  build(): Tree {
    return this.#tree(this.#from.document.contents, { path: '', depth: 0 });
  }

  #tree(node: Node | null | undefined, spot: Spot): Tree {
    this.#nodes += 1;
    if (this.#nodes > NODES_AT_MOST) throw new Unusable('is too large for a config file');
    if (spot.depth > DEPTH_AT_MOST) throw new Unusable('is nested too deeply for a config file');
    const placed = { path: spot.path, at: spot.at ?? this.#at(node) };
    if (isAlias(node)) return this.#target(node, { ...placed, depth: spot.depth + 1 });
    if (isMap(node)) return { kind: 'map', ...placed, entries: this.#entries(node, spot) };
    if (isSeq(node)) return { kind: 'list', ...placed, items: this.#items(node.items, spot) };
    return { kind: 'scalar', ...placed, value: isScalar(node) ? scalarValue(node) : null };
  }

  #target(alias: Alias, spot: Spot): Tree {
    const node = alias.resolve(this.#from.document);
    if (node === undefined) throw new Unusable(SENTENCES['BAD_ALIAS'] ?? '', this.#at(alias));
    return this.#tree(node, spot);
  }

  #items(items: readonly unknown[], spot: Spot): readonly Tree[] {
    return items.map((item, index) =>
      this.#tree(asNode(item), { path: `${spot.path}[${index}]`, depth: spot.depth + 1 }),
    );
  }

  #entries(map: YAMLMap, spot: Spot): ReadonlyMap<string, Tree> {
    const own = new Map<string, Tree>();
    const merged = new Map<string, Tree>();
    for (const pair of map.items) {
      const key = keyText(pair.key);
      const path = childPath(spot.path, key);
      const at = this.#at(asNode(pair.key));
      const tree = this.#tree(asNode(pair.value), { path, depth: spot.depth + 1, at });
      if (key === '<<') for (const [name, value] of mergeSources(tree)) merged.set(name, value);
      else {
        if (own.has(key)) this.#from.repeated.push({ path, at });
        own.set(key, tree);
      }
    }
    return new Map([...merged, ...own]);
  }

  #at(node: Node | null | undefined): Position {
    return positionAt(this.#from.lines, node?.range?.[0] ?? 0);
  }
}

// In a merge of several mappings the first one that has a key wins.
function mergeSources(tree: Tree): readonly (readonly [string, Tree])[] {
  if (tree.kind === 'map') return [...tree.entries];
  return tree.kind === 'list' ? tree.items.toReversed().flatMap(mergeSources) : [];
}

function asNode(value: unknown): Node | null {
  if (isPair(value)) return null;
  return isAlias(value) || isMap(value) || isSeq(value) || isScalar(value) ? value : null;
}

function keyText(key: unknown): string {
  if (!isScalar(key)) return '';
  return key.source ?? textOf(key.value);
}

function scalarValue(scalar: Scalar): ScalarValue {
  const { value } = scalar;
  if (value === null || value === undefined) return null;
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return value;
  // Dates, bytes and very large integers of YAML 1.1: their text is what anybody meant.
  return scalar.source ?? textOf(value);
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint'
    ? `${value}`
    : '';
}
