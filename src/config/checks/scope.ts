// SPDX-License-Identifier: Apache-2.0
// What checks know beside the file: the names that were written, also of what the schema refused, so that a
// broken image is reported once and not again by every pool that names it.
import { isMapping } from '../config-path.ts';

export class CheckScope {
  readonly #tree: Readonly<Record<string, unknown>>;
  /** Folders that a reboot empties. */
  readonly tempFolders: readonly string[];

  constructor(tree: Readonly<Record<string, unknown>>, tempFolders: readonly string[]) {
    this.#tree = tree;
    this.tempFolders = tempFolders;
  }

  mentions(section: string): boolean {
    return isMapping(this.#tree[section]) && Object.keys(this.#tree[section]).length > 0;
  }

  names(section: string): readonly string[] {
    const value = this.#tree[section];
    return isMapping(value) ? Object.keys(value) : [];
  }
}
