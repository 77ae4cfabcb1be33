// SPDX-License-Identifier: Apache-2.0
// The content of a source file with the position of every value, independent of the file format.

import type { SourcePosition } from '../result.ts';

export type ScalarValue = string | number | boolean | null;

/** What a note points to: a value of the file, or something that has only a name. */
export interface SourceRef {
  /** The full name of the value as its system writes it: `node_groups[0].min_size`. */
  readonly path: string;
  /** Absent for a value that is not in the file, such as a variable. */
  readonly at?: SourcePosition;
}

export interface ScalarTree extends SourceRef {
  readonly kind: 'scalar';
  readonly value: ScalarValue;
}

export interface ListTree extends SourceRef {
  readonly kind: 'list';
  readonly items: readonly SourceTree[];
}

export interface MapTree extends SourceRef {
  readonly kind: 'map';
  readonly entries: ReadonlyMap<string, SourceTree>;
}

export type SourceTree = ScalarTree | ListTree | MapTree;

export function childPath(parent: string, key: string): string {
  return parent === '' ? key : `${parent}.${key}`;
}

/** The keys of a mapping. Records which keys were read; the others are unknown keys. */
export class SourceSection {
  readonly path: string;
  readonly at?: SourcePosition;
  readonly #entries: ReadonlyMap<string, SourceTree>;
  readonly #readKeys = new Set<string>();

  constructor(path: string, tree?: SourceTree) {
    this.path = path;
    if (tree?.at !== undefined) this.at = tree.at;
    this.#entries = tree?.kind === 'map' ? tree.entries : new Map<string, SourceTree>();
  }

  find(key: string): SourceTree | undefined {
    this.#readKeys.add(key);
    return this.#entries.get(key);
  }

  /** The mapping of a key; empty when it is absent or has another type. */
  section(key: string): SourceSection {
    return new SourceSection(childPath(this.path, key), this.find(key));
  }

  /** The list items of a key; empty when it is absent or has another type. */
  items(key: string): readonly SourceTree[] {
    const tree = this.find(key);
    return tree?.kind === 'list' ? tree.items : [];
  }

  keys(): readonly string[] {
    return [...this.#entries.keys()];
  }

  refTo(key: string): SourceRef {
    return this.#entries.get(key) ?? { path: childPath(this.path, key) };
  }

  unreadKeys(): readonly SourceTree[] {
    return [...this.#entries].filter(([key]) => !this.#readKeys.has(key)).map(([, tree]) => tree);
  }
}
