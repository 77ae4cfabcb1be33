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
        'carried-differently',
        `a pool's name is a DNS label of its own here: '${wanted}' became '${name}', in tags and labels too`,
      );
    }
    return name;
  }
}
