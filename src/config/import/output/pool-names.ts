// SPDX-License-Identifier: Apache-2.0
// Gives out names of pools: theirs where it is allowed here, otherwise the nearest that is, with a note.

import type { SourceRef } from '../source/tree.ts';
import type { ImportWriter } from '../writer.ts';
import { makeUniqueLabel, toDnsLabel } from './naming.ts';

export class PoolNameAllocator {
  readonly #work: ImportWriter;
  readonly #taken = new Set<string>();

  constructor(writer: ImportWriter) {
    this.#work = writer;
  }

  allocate(wanted: string, where: SourceRef): string {
    const name = makeUniqueLabel(toDnsLabel(wanted, 'pool'), this.#taken);
    this.#taken.add(name);
    if (name !== wanted) {
      this.#work.note(
        where,
        'imported-differently',
        `a pool name must be a unique DNS label: '${wanted}' became '${name}', also in tags and labels`,
      );
    }
    return name;
  }
}
