// SPDX-License-Identifier: Apache-2.0
// Finds a machine by its name, its id, or a unique prefix of either.
import type { Machine } from '../model/machine.ts';
import { InvalidRequest, NotFound } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import { displayName } from './format-machines.ts';

export const MACHINE_ARGUMENT = 'name, id, or a unique prefix of either';

const MAX_NAMED = 5;

export async function findMachine({ fleet }: OpenFleet, text: string): Promise<Machine> {
  return findMachineIn((await fleet.status()).machines, text);
}

/** Machines that exist come before those that are gone or failed, whose names may have been given again. */
export function findMachineIn(machines: readonly Machine[], text: string): Machine {
  const namesOf = ({ id, placement }: Machine) => [
    id,
    ...(placement === undefined ? [] : [placement.name]),
  ];
  const exact = preferExisting(machines.filter((one) => namesOf(one).includes(text)));
  const living = exact.filter(({ phase }) => phase !== 'gone' && phase !== 'failed');
  if (living.length > 1)
    throw new InvalidRequest(
      'REQUEST_INVALID',
      `${living.length} machines have the name '${text}': ${living.map(({ id }) => id).join(', ')}`,
      { hint: 'Give the id.' },
    );
  if (exact[0] !== undefined) return exact[0];
  const hasPrefix = (name: string) => text !== '' && name.startsWith(text);
  const found = preferExisting(machines.filter((one) => namesOf(one).some(hasPrefix)));
  const [first, second] = found;
  if (first === undefined)
    throw new NotFound('MACHINE_NOT_FOUND', `no machine has the name or id '${text}'`, {
      hint: 'pvescaler machines --all lists all machines.',
    });
  if (second === undefined) return first;
  const names = found.slice(0, MAX_NAMED).map(displayName).join(', ');
  const more = found.length > MAX_NAMED ? `, and ${found.length - MAX_NAMED} more` : '';
  throw new InvalidRequest(
    'REQUEST_INVALID',
    `the names or ids of ${found.length} machines start with '${text}': ${names}${more}`,
    { hint: 'Give more characters.' },
  );
}

function preferExisting(machines: readonly Machine[]): readonly Machine[] {
  const existing = machines.filter(({ phase }) => phase !== 'gone' && phase !== 'failed');
  return existing.length > 0 ? existing : machines;
}
