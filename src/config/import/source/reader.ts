// SPDX-License-Identifier: Apache-2.0
// Values of a foreign file as the type that their system makes of them, and a note where it cannot.

import type { Severity } from '../result.ts';
import type { Work } from '../work.ts';
import type { ScalarValue, Section, Tree } from './tree.ts';

const TRUE_WORDS: ReadonlySet<string> = new Set(['1', 'true', 'yes', 'on', 'y']);

export class Reader {
  readonly #work: Work;

  constructor(work: Work) {
    this.#work = work;
  }

  /** Numbers and booleans count as their text, as in every one of the systems. */
  text(tree: Tree | undefined): string | undefined {
    if (tree === undefined) return undefined;
    if (tree.kind === 'scalar' && tree.value !== null) return scalarText(tree.value);
    this.#unusable(tree, 'a text');
    return undefined;
  }

  integer(tree: Tree | undefined): number | undefined {
    if (tree === undefined) return undefined;
    const value = tree.kind === 'scalar' ? wholeNumber(tree.value) : undefined;
    if (value === undefined) this.#unusable(tree, 'a whole number');
    return value;
  }

  flag(tree: Tree | undefined): boolean | undefined {
    if (tree === undefined) return undefined;
    if (tree.kind === 'scalar') return isTrue(tree.value);
    this.#unusable(tree, 'true or false');
    return undefined;
  }

  /** The texts of a list; what is not a text in it is noted and left out. */
  texts(tree: Tree | undefined): readonly { readonly tree: Tree; readonly text: string }[] {
    if (tree === undefined || isNull(tree)) return [];
    if (tree.kind !== 'list') {
      this.#unusable(tree, 'a list');
      return [];
    }
    return tree.items.flatMap((item) => {
      const text = this.text(item);
      return text === undefined ? [] : [{ tree: item, text }];
    });
  }

  /** Notes a key that should hold a mapping or a list and holds something else. */
  expect(tree: Tree | undefined, kind: 'map' | 'list'): void {
    if (tree === undefined || tree.kind === kind || isNull(tree)) return;
    this.#unusable(tree, kind === 'map' ? 'a mapping' : 'a list');
  }

  /** Says of each key that nobody asked for what becomes of it. */
  unknown(section: Section, severity: Severity, message: string): void {
    for (const tree of section.unasked()) this.#work.note(tree, severity, message);
  }

  #unusable(tree: Tree, expected: string): void {
    this.#work.note(tree, 'not-carried', `is not ${expected}, so it was treated as absent`);
  }
}

export function isNull(tree: Tree): boolean {
  return tree.kind === 'scalar' && tree.value === null;
}

export function isTrue(value: ScalarValue): boolean {
  return value !== null && TRUE_WORDS.has(String(value).trim().toLowerCase());
}

function scalarText(value: Exclude<ScalarValue, null>): string {
  if (typeof value === 'boolean') return value ? 'true' : 'false';
  return String(value).trim();
}

function wholeNumber(value: ScalarValue): number | undefined {
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'string' && !/^[+-]?\d+$/.test(value.trim())) return undefined;
  const number = value === null ? Number.NaN : Math.trunc(Number(value));
  return Number.isSafeInteger(number) ? number : undefined;
}
