// SPDX-License-Identifier: Apache-2.0
// Pools that were removed from the config while they had machines.
import { type Machine, mayHaveVm } from '../../model/machine.ts';
import { roleOf } from '../../model/role.ts';
import type { FleetSettings } from './settings.ts';

/** Its machines are kept: they may run pods. A person deletes them, or adds the pool again. */
export interface RemovedPool {
  readonly name: string;
  readonly machines: readonly Machine[];
  /** Machines whose VM does not exist any more. */
  readonly missing: number;
}

export function removedPools(
  machines: readonly Machine[],
  pools: FleetSettings['pools'],
  isMissing: (machine: Machine) => boolean = () => false,
): readonly RemovedPool[] {
  const left = machines.filter(
    ({ pool, phase }) =>
      pools[pool] === undefined && roleOf(pool) === undefined && mayHaveVm(phase),
  );
  const byPool = Map.groupBy(left, ({ pool }) => pool);
  return Array.from(byPool, ([name, own]) => ({
    name,
    machines: own,
    missing: own.filter(isMissing).length,
  }));
}

export function deleteCommand({ id, placement }: Machine): string {
  return `pvescaler machine delete ${placement?.name ?? id}`;
}
