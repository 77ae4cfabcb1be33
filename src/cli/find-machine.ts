// SPDX-License-Identifier: Apache-2.0
// Finds a machine by its name, its id, or a unique prefix of either, and a Node by its name or a unique prefix.
import type { Machine } from '../model/machine.ts';
import { InvalidRequest, NotFound } from '../ports/errors.ts';
import type { Explained } from '../scaling/index.ts';
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
  throw notUnique(`names or ids of ${found.length} machines`, text, found.map(displayName));
}

/** The Node that has this name, or the only one whose name starts with it; else the text itself. */
export function completeNodeName({ input }: Explained, text: string): string {
  const names = input.snapshot.nodes.map(({ name }) => name);
  if (names.includes(text)) return text;
  const found = names.filter((name) => text !== '' && name.startsWith(text));
  if (found.length > 1) throw notUnique(`names of ${found.length} nodes`, text, found);
  return found[0] ?? text;
}

function notUnique(what: string, text: string, found: readonly string[]): InvalidRequest {
  const names = found.slice(0, MAX_NAMED).join(', ');
  const more = found.length > MAX_NAMED ? `, and ${found.length - MAX_NAMED} more` : '';
  return new InvalidRequest(
    'REQUEST_INVALID',
    `the ${what} start with '${text}': ${names}${more}`,
    { hint: 'Give more characters.' },
  );
}

function preferExisting(machines: readonly Machine[]): readonly Machine[] {
  const existing = machines.filter(({ phase }) => phase !== 'gone' && phase !== 'failed');
  return existing.length > 0 ? existing : machines;
}
