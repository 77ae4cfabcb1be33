// SPDX-License-Identifier: Apache-2.0
// What checks know beside the file: the names that were written, also of what the schema refused, so that a
// broken image is reported once and not again by every pool that names it.
import { isMapping } from '../config-path.ts';

export interface CheckFolders {
  /** Folders that a reboot empties. */
  readonly temp: readonly string[];
  /** Where a path of the file leads to. */
  readonly resolve: (path: string) => string;
}

export class CheckContext {
  readonly #tree: Readonly<Record<string, unknown>>;
  readonly folders: CheckFolders;

  constructor(tree: Readonly<Record<string, unknown>>, folders: CheckFolders) {
    this.#tree = tree;
    this.folders = folders;
  }

  hasEntries(section: string): boolean {
    return isMapping(this.#tree[section]) && Object.keys(this.#tree[section]).length > 0;
  }

  entryNames(section: string): readonly string[] {
    const value = this.#tree[section];
    return isMapping(value) ? Object.keys(value) : [];
  }
}
