// SPDX-License-Identifier: Apache-2.0
// Parses YAML text to a source tree. Messages never quote the text, because a line may contain a secret.

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
import { syntaxMessage, UNRESOLVED_ALIAS } from '../../document/syntax-message.ts';
import type { SourcePosition } from '../result.ts';
import { childPath, type ScalarValue, type SourceRef, type SourceTree } from './tree.ts';

export interface SourceProblem extends SourcePosition {
  readonly message: string;
}

export type YamlResult =
  | {
      readonly ok: true;
      /** One per document of the file. */
      readonly trees: readonly SourceTree[];
      /** Duplicate keys of a mapping; the tree contains the last one. */
      readonly repeated: readonly SourceRef[];
    }
  | { readonly ok: false; readonly problems: readonly SourceProblem[] };

/** The Python loader reads YAML 1.1 (`yes` is true, `010` is eight), most others 1.2. */
export type YamlVersion = '1.1' | '1.2';

const MAX_NODES = 20_000;
const MAX_DEPTH = 50;

class YamlReadError extends Error {
  readonly at: SourcePosition;
  constructor(message: string, at: SourcePosition = { line: 1, column: 1 }) {
    super(message);
    this.at = at;
  }
}

export function readYaml(text: string, version: YamlVersion): YamlResult {
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
    // The parser is recursive: ten thousand brackets overflow the stack.
    const { at, message } =
      error instanceof YamlReadError ? error : new YamlReadError('cannot be read as YAML');
    return { ok: false, problems: [{ ...at, message }] };
  }
}

function toTrees(documents: readonly Document.Parsed[], lines: LineCounter): YamlResult {
  const problems = documents.flatMap((document) =>
    document.errors.map((error) => ({
      ...positionAt(lines, error.pos[0]),
      message: syntaxMessage(error.code),
    })),
  );
  if (problems.length > 0) return { ok: false, problems };
  const repeated: SourceRef[] = [];
  const trees = documents.map((document) =>
    new SourceTreeBuilder({ document, lines, repeated }).build(),
  );
  return { ok: true, trees, repeated };
}

export function positionAt(lines: LineCounter, offset: number): SourcePosition {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(line, 1), column: Math.max(col, 1) };
}

interface TreeBuilderInput {
  readonly document: Document.Parsed;
  readonly lines: LineCounter;
  readonly repeated: SourceRef[];
}

interface TreeNodeInput {
  readonly path: string;
  readonly depth: number;
  /** Position of the key, or of the list item. */
  readonly at?: SourcePosition;
}

class SourceTreeBuilder {
  readonly #input: TreeBuilderInput;
  #nodes = 0;

  constructor(from: TreeBuilderInput) {
    this.#input = from;
  }

  build(): SourceTree {
    return this.#buildTree(this.#input.document.contents, { path: '', depth: 0 });
  }

  #buildTree(node: Node | null | undefined, input: TreeNodeInput): SourceTree {
    this.#nodes += 1;
    if (this.#nodes > MAX_NODES) throw new YamlReadError('is too large for a config file');
    if (input.depth > MAX_DEPTH) throw new YamlReadError('is nested too deeply for a config file');
    const placed = { path: input.path, at: input.at ?? this.#positionOf(node) };
    if (isAlias(node)) return this.#buildAliasTarget(node, { ...placed, depth: input.depth + 1 });
    if (isMap(node)) return { kind: 'map', ...placed, entries: this.#buildEntries(node, input) };
    if (isSeq(node)) return { kind: 'list', ...placed, items: this.#buildItems(node.items, input) };
    return { kind: 'scalar', ...placed, value: isScalar(node) ? readScalar(node) : null };
  }

  #buildAliasTarget(alias: Alias, input: TreeNodeInput): SourceTree {
    const node = alias.resolve(this.#input.document);
    if (node === undefined) throw new YamlReadError(UNRESOLVED_ALIAS, this.#positionOf(alias));
    return this.#buildTree(node, input);
  }

  #buildItems(items: readonly unknown[], input: TreeNodeInput): readonly SourceTree[] {
    return items.map((item, index) =>
      this.#buildTree(asNode(item), { path: `${input.path}[${index}]`, depth: input.depth + 1 }),
    );
  }

  #buildEntries(map: YAMLMap, input: TreeNodeInput): ReadonlyMap<string, SourceTree> {
    const own = new Map<string, SourceTree>();
    const merged = new Map<string, SourceTree>();
    for (const pair of map.items) {
      const key = readKey(pair.key);
      const path = childPath(input.path, key);
      const at = this.#positionOf(asNode(pair.key));
      const tree = this.#buildTree(asNode(pair.value), { path, depth: input.depth + 1, at });
      if (key === '<<') for (const [name, value] of mergeSources(tree)) merged.set(name, value);
      else {
        if (own.has(key)) this.#input.repeated.push({ path, at });
        own.set(key, tree);
      }
    }
    return new Map([...merged, ...own]);
  }

  #positionOf(node: Node | null | undefined): SourcePosition {
    return positionAt(this.#input.lines, node?.range?.[0] ?? 0);
  }
}

// In a merge of several mappings the first one that has a key takes precedence.
function mergeSources(tree: SourceTree): readonly (readonly [string, SourceTree])[] {
  if (tree.kind === 'map') return [...tree.entries];
  return tree.kind === 'list' ? tree.items.toReversed().flatMap(mergeSources) : [];
}

function asNode(value: unknown): Node | null {
  if (isPair(value)) return null;
  return isAlias(value) || isMap(value) || isSeq(value) || isScalar(value) ? value : null;
}

function readKey(key: unknown): string {
  if (!isScalar(key)) return '';
  return key.source ?? formatYamlValue(key.value);
}

function readScalar(scalar: Scalar): ScalarValue {
  const { value } = scalar;
  if (value === null || value === undefined) return null;
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return value;
  // Dates, binary data and very large integers of YAML 1.1 are read as their source text.
  return scalar.source ?? formatYamlValue(value);
}

function formatYamlValue(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint'
    ? `${value}`
    : '';
}
