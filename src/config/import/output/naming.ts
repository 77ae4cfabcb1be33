// SPDX-License-Identifier: Apache-2.0
// Names of the other systems, made into ones that are allowed here.

import { POOL_NAME_MAX } from '../../../model/pool-name.ts';

/** The nearest DNS label, at most as long as a pool's name may be; `fallback` when nothing is left. */
export function toDnsLabel(text: string, fallback: string): string {
  const label = text
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, POOL_NAME_MAX)
    .replaceAll(/^-+|-+$/g, '');
  return label === '' ? fallback : label;
}

/** The label, with a number behind it where another one has the same name already. */
export function makeUniqueLabel(label: string, taken: ReadonlySet<string>): string {
  if (!taken.has(label)) return label;
  for (let number = 2; ; number += 1) {
    const ending = `-${number}`;
    const candidate = `${label.slice(0, POOL_NAME_MAX - ending.length).replaceAll(/-+$/g, '')}${ending}`;
    if (!taken.has(candidate)) return candidate;
  }
}
