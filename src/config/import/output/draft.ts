// SPDX-License-Identifier: Apache-2.0
// The config file in progress: values by path, each with a comment about its origin.

import { Document, isCollection, isMap, isScalar, isSeq, Scalar } from 'yaml';
import { type ConfigPath, configPathKey, pathStartsWith } from '../../config-path.ts';

export type DraftValue =
  | string
  | number
  | boolean
  | readonly DraftValue[]
  | { readonly [key: string]: DraftValue };

interface DraftEntry {
  readonly path: ConfigPath;
  readonly value: DraftValue;
  readonly comment: string;
}

/** A whole pool, region or section is never removed because of one wrong value. */
const MIN_REMOVED_PATH_LENGTH = 3;

export class Draft {
  readonly #entries = new Map<string, DraftEntry>();
  readonly #header: string;
  readonly #order: readonly string[];

  constructor({ header, order }: { readonly header: string; readonly order: readonly string[] }) {
    this.#header = header;
    this.#order = order;
  }

  set(path: ConfigPath, value: DraftValue, comment: string): void {
    this.#entries.set(configPathKey(path), { path, value, comment: toOneLine(comment) });
  }

  paths(): readonly ConfigPath[] {
    return [...this.#entries.values()].map(({ path }) => path);
  }

  /** Whether there is a value at the path or below it. */
  hasValue(path: ConfigPath): boolean {
    return this.paths().some((entry) => pathStartsWith(entry, path));
  }

  /** Removes the value at the path or the value that contains it; otherwise the values below the path. */
  remove(path: ConfigPath): readonly ConfigPath[] {
    const paths = this.paths();
    const around = paths.filter((entry) => pathStartsWith(path, entry));
    const below =
      path.length >= MIN_REMOVED_PATH_LENGTH
        ? paths.filter((entry) => pathStartsWith(entry, path))
        : [];
    const removedPath = around.length > 0 ? around : below;
    for (const entry of removedPath) this.#entries.delete(configPathKey(entry));
    return removedPath;
  }

  toYaml(): string {
    const document = new Document({});
    for (const { path, value, comment } of this.#sorted()) {
      document.setIn(path, document.createNode(value));
      addComment(document, path, comment);
    }
    for (const seq of findScalarLists(document.contents)) seq.flow = true;
    document.commentBefore = this.#header;
    return document.toString({ lineWidth: 0, flowCollectionPadding: false });
  }

  #sorted(): readonly DraftEntry[] {
    const rank = (entry: DraftEntry) => this.#order.indexOf(String(entry.path[0]));
    return [...this.#entries.values()].toSorted((left, right) => rank(left) - rank(right));
  }
}

function addComment(document: Document, path: ConfigPath, comment: string): void {
  if (comment === '') return;
  const node = document.getIn(path, true);
  if (isScalar(node)) node.comment = ` ${comment}`;
  else if (isCollection(node)) addCommentAboveKey(document, path, comment);
}

// The comment of a mapping or list goes above its key. After it, it would seem to belong to the last item.
function addCommentAboveKey(document: Document, path: ConfigPath, comment: string): void {
  const parent = document.getIn(path.slice(0, -1), true);
  if (!isMap(parent)) return;
  const pair = parent.items.find((item) => readYamlKey(item.key) === path.at(-1));
  if (pair === undefined) return;
  const key = new Scalar(path.at(-1));
  key.commentBefore = ` ${comment}`;
  pair.key = key;
}

function readYamlKey(key: unknown): unknown {
  return isScalar(key) ? key.value : key;
}

function findScalarLists(node: unknown): readonly { flow?: boolean | undefined }[] {
  if (isMap(node)) return node.items.flatMap((pair) => findScalarLists(pair.value));
  if (!isSeq(node)) return [];
  const plain = node.items.every((item) => isScalar(item) && item.comment === undefined);
  return plain ? [node] : node.items.flatMap((item) => findScalarLists(item));
}

function toOneLine(comment: string): string {
  return comment.replaceAll(/\s+/g, ' ').trim();
}
