// SPDX-License-Identifier: Apache-2.0
// Converts names of the source system to names that are allowed in our config.

import { MAX_POOL_NAME_LENGTH } from '../../../model/names.ts';
import type { SourceRef } from '../source/tree.ts';
import type { ImportWriter } from '../writer.ts';

/** Converts text to a DNS label with the maximum length of a pool name; `fallback` when no characters remain. */
export function toDnsLabel(text: string, fallback: string): string {
  const label = text
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_POOL_NAME_LENGTH)
    .replaceAll(/^-+|-+$/g, '');
  return label === '' ? fallback : label;
}

/** Appends a number to the label if it is already taken. */
export function makeUniqueLabel(label: string, taken: ReadonlySet<string>): string {
  if (!taken.has(label)) return label;
  for (let number = 2; ; number += 1) {
    const ending = `-${number}`;
    const candidate = `${label.slice(0, MAX_POOL_NAME_LENGTH - ending.length).replaceAll(/-+$/g, '')}${ending}`;
    if (!taken.has(candidate)) return candidate;
  }
}

/** Allocates unique pool names and adds a note where the name of the source system had to change. */
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
