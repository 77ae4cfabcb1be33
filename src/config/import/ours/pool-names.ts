// SPDX-License-Identifier: Apache-2.0
// Gives out names of pools: theirs where it is allowed here, otherwise the nearest that is, with a note.

import type { Where } from '../source/tree.ts';
import type { Work } from '../work.ts';
import { dnsLabel, uniqueLabel } from './naming.ts';

export class PoolNames {
  readonly #work: Work;
  readonly #taken = new Set<string>();

  constructor(work: Work) {
    this.#work = work;
  }

  take(wanted: string, where: Where): string {
    const name = uniqueLabel(dnsLabel(wanted, 'pool'), this.#taken);
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
