// SPDX-License-Identifier: Apache-2.0
// A foreign file's content with the place of every value: what the mappings read, whatever the file's language.

import type { Position } from '../result.ts';

export type ScalarValue = string | number | boolean | null;

interface Placed {
  /** The full name of the value as its system writes it: `node_groups[0].min_size`. */
  readonly path: string;
  /** Absent for what does not stand in the file, e.g. a variable. */
  readonly at?: Position;
}

export interface ScalarTree extends Placed {
  readonly kind: 'scalar';
  readonly value: ScalarValue;
}

export interface ListTree extends Placed {
  readonly kind: 'list';
  readonly items: readonly Tree[];
}

export interface MapTree extends Placed {
  readonly kind: 'map';
  readonly entries: ReadonlyMap<string, Tree>;
}

export type Tree = ScalarTree | ListTree | MapTree;

/** Where a note points to: a value of the file, or something that has a name only. */
export type Where = Placed;

export function childPath(parent: string, key: string): string {
  return parent === '' ? key : `${parent}.${key}`;
}

/** The keys of a mapping, with a memory of which ones were asked for: the rest is what nobody knows. */
export class Section {
  readonly path: string;
  readonly at?: Position;
  readonly #entries: ReadonlyMap<string, Tree>;
  readonly #asked = new Set<string>();

  constructor(path: string, tree?: Tree) {
    this.path = path;
    if (tree?.at !== undefined) this.at = tree.at;
    this.#entries = tree?.kind === 'map' ? tree.entries : new Map<string, Tree>();
  }

  find(key: string): Tree | undefined {
    this.#asked.add(key);
    return this.#entries.get(key);
  }

  /** The mapping under a key; empty when it is absent or something else. */
  section(key: string): Section {
    return new Section(childPath(this.path, key), this.find(key));
  }

  /** The items of a list under a key; none when it is absent or something else. */
  items(key: string): readonly Tree[] {
    const tree = this.find(key);
    return tree?.kind === 'list' ? tree.items : [];
  }

  keys(): readonly string[] {
    return [...this.#entries.keys()];
  }

  where(key: string): Where {
    return this.#entries.get(key) ?? { path: childPath(this.path, key) };
  }

  unasked(): readonly Tree[] {
    return [...this.#entries].filter(([key]) => !this.#asked.has(key)).map(([, tree]) => tree);
  }
}
