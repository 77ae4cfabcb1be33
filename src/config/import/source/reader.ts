// SPDX-License-Identifier: Apache-2.0
// Reads values of a source file with the type that the source system expects, and adds a note when that is
// not possible.

import type { NoteSeverity } from '../result.ts';
import type { ImportWriter } from '../writer.ts';
import type { ScalarValue, SourceSection, SourceTree } from './tree.ts';

const TRUE_WORDS: ReadonlySet<string> = new Set(['1', 'true', 'yes', 'on', 'y']);

export class SourceReader {
  readonly #work: ImportWriter;

  constructor(writer: ImportWriter) {
    this.#work = writer;
  }

  /** Numbers and booleans are read as text, as in all source systems. */
  readText(tree: SourceTree | undefined): string | undefined {
    if (tree === undefined) return undefined;
    if (tree.kind === 'scalar' && tree.value !== null) return scalarToText(tree.value);
    this.#noteWrongKind(tree, 'text');
    return undefined;
  }

  readInteger(tree: SourceTree | undefined): number | undefined {
    if (tree === undefined) return undefined;
    const value = tree.kind === 'scalar' ? toInteger(tree.value) : undefined;
    if (value === undefined) this.#noteWrongKind(tree, 'a whole number');
    return value;
  }

  /** Like readText, but null counts as absent. */
  readNonNullText(tree: SourceTree | undefined): string | undefined {
    return tree === undefined || isNull(tree) ? undefined : this.readText(tree);
  }

  /** Like readInteger, but null counts as absent. */
  readNonNullInteger(tree: SourceTree | undefined): number | undefined {
    return tree === undefined || isNull(tree) ? undefined : this.readInteger(tree);
  }

  readBoolean(tree: SourceTree | undefined): boolean | undefined {
    if (tree === undefined) return undefined;
    if (tree.kind === 'scalar') return isTruthy(tree.value);
    this.#noteWrongKind(tree, 'true or false');
    return undefined;
  }

  /** The text items of a list. Other items are noted and skipped. */
  readTextList(
    tree: SourceTree | undefined,
  ): readonly { readonly tree: SourceTree; readonly text: string }[] {
    if (tree === undefined || isNull(tree)) return [];
    if (tree.kind !== 'list') {
      this.#noteWrongKind(tree, 'a list');
      return [];
    }
    return tree.items.flatMap((item) => {
      const text = this.readText(item);
      return text === undefined ? [] : [{ tree: item, text }];
    });
  }

  /** Adds a note if the value is not the expected mapping or list. */
  expectKind(tree: SourceTree | undefined, kind: 'map' | 'list'): void {
    if (tree === undefined || tree.kind === kind || isNull(tree)) return;
    this.#noteWrongKind(tree, kind === 'map' ? 'a mapping' : 'a list');
  }

  /** Adds a note for each key that was not read. */
  noteUnreadKeys(section: SourceSection, severity: NoteSeverity, message: string): void {
    for (const tree of section.unreadKeys()) this.#work.note(tree, severity, message);
  }

  #noteWrongKind(tree: SourceTree, expected: string): void {
    this.#work.note(tree, 'not-imported', `must be ${expected}; it was treated as absent`);
  }
}

export function isNull(tree: SourceTree): boolean {
  return tree.kind === 'scalar' && tree.value === null;
}

export function isTruthy(value: ScalarValue): boolean {
  return value !== null && TRUE_WORDS.has(String(value).trim().toLowerCase());
}

function scalarToText(value: Exclude<ScalarValue, null>): string {
  if (typeof value === 'boolean') return value ? 'true' : 'false';
  return String(value).trim();
}

function toInteger(value: ScalarValue): number | undefined {
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'string' && !/^[+-]?\d+$/.test(value.trim())) return undefined;
  const number = value === null ? Number.NaN : Math.trunc(Number(value));
  return Number.isSafeInteger(number) ? number : undefined;
}
