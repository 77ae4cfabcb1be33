// SPDX-License-Identifier: Apache-2.0
// Finds a machine by its name, its id, or a unique prefix of its id.
import type { Machine } from '../model/machine.ts';
import { InvalidRequest, NotFound } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';

const MIN_PREFIX = 4;

export async function findMachine({ fleet }: OpenFleet, text: string): Promise<Machine> {
  return findMachineIn((await fleet.status()).machines, text);
}

export function findMachineIn(machines: readonly Machine[], text: string): Machine {
  const isMatch = ({ id, placement }: Machine) => id === text || placement?.name === text;
  const exact = machines.filter(isMatch);
  const existing = exact.filter(({ phase }) => phase !== 'gone' && phase !== 'failed');
  const found = existing.length > 0 ? existing : exact;
  const byPrefix = text.length < MIN_PREFIX ? [] : machines.filter(({ id }) => id.startsWith(text));
  const [first, second] = found.length > 0 ? found : byPrefix;
  if (first === undefined)
    throw new NotFound('MACHINE_NOT_FOUND', `no machine has the name or id '${text}'`, {
      hint: 'pvescaler machines --all lists all machines.',
    });
  if (second === undefined || found.length > 0) return first;
  throw new InvalidRequest('REQUEST_INVALID', `several machine ids start with '${text}'`, {
    hint: 'Give more characters of the id.',
  });
}
