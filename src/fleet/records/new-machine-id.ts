// SPDX-License-Identifier: Apache-2.0
import { type MachineId, parseMachineId } from '../../model/machine.ts';
import { Bug } from '../../ports/errors.ts';
import type { Random } from '../../ports/random.ts';

export function newMachineId(random: Random): MachineId {
  const id = parseMachineId(random.uuid());
  if (!id.ok) throw new Bug('BUG', `Random gave a uuid that ${id.problem}`);
  return id.value;
}
