// SPDX-License-Identifier: Apache-2.0
// Which machine a person means: its id, the beginning of it, or its name.
import type { Machine } from '../model/machine.ts';
import { InvalidRequest, NotFound } from '../ports/errors.ts';
import type { OpenFleet } from './open-fleet.ts';

export async function findMachine({ fleet }: OpenFleet, text: string): Promise<Machine> {
  const { machines } = await fleet.status();
  const isMeant = ({ id, placement }: Machine) => id === text || placement?.name === text;
  const exact = machines.filter(isMeant);
  const alive = exact.filter(({ phase }) => phase !== 'gone' && phase !== 'failed');
  const found = alive.length > 0 ? alive : exact;
  const begun = text.length < 4 ? [] : machines.filter(({ id }) => id.startsWith(text));
  const [first, second] = found.length > 0 ? found : begun;
  if (first === undefined) throw new NotFound('MACHINE_NOT_FOUND', `no machine '${text}'`);
  if (second === undefined || found.length > 0) return first;
  throw new InvalidRequest('REQUEST_INVALID', `'${text}' is the beginning of several ids`);
}
