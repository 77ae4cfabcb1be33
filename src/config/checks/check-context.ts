// SPDX-License-Identifier: Apache-2.0
// What checks need besides the file: all names that the file defines, including entries that the schema
// refused. An invalid image is then reported once and not again by every pool that refers to it.
import { isMapping } from '../config-path.ts';

export interface CheckFolders {
  /** Folders that are cleared at reboot. */
  readonly temp: readonly string[];
  /** Resolves a path of the file to an absolute path. */
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
