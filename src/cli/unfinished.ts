// SPDX-License-Identifier: Apache-2.0
// What a command that ends early leaves to others: which machines are not where they shall be, and what holds them up.
import type { Machine } from '../model/machine.ts';
import type { OpenFleet } from './open-fleet.ts';

const NAMED = 3;
const LAST_ENTRIES = 20;

/** The newest trouble with a machine, in words; undefined where there was none since it came into its phase. */
export async function troubleOf(
  { store }: Pick<OpenFleet, 'store'>,
  { id, phaseSince }: Machine,
): Promise<string | undefined> {
  const entries = await store.journal.read({ machine: id, limit: LAST_ENTRIES });
  return entries.findLast(({ kind, at }) => kind !== 'did' && at >= phaseSince)?.message;
}

/** One sentence, for people who will not see the end. */
export async function leftToDo(
  open: Pick<OpenFleet, 'store'>,
  machines: readonly Machine[],
): Promise<string> {
  if (machines.length === 0) return 'nothing of it was left to do';
  const named: string[] = [];
  for (const machine of machines.slice(0, NAMED)) {
    const trouble = await troubleOf(open, machine);
    const why = trouble === undefined ? '' : ` (${trouble})`;
    named.push(`${nameOf(machine)} is ${machine.phase}${why}`);
  }
  const more = machines.length - named.length;
  return `${named.join(', ')}${more === 0 ? '' : `, and ${more} more`}`;
}

export function nameOf({ id, placement }: Machine): string {
  return placement?.name ?? id;
}
