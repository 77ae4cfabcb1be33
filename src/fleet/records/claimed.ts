// SPDX-License-Identifier: Apache-2.0
import { mayExist } from '../../model/machine.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';

/** The ids of a region that machines stand for, whatever is there under them. */
export function claimedVmIds({ records }: ReconcileContext, region: string): ReadonlySet<number> {
  return new Set(
    records.machines.flatMap(({ phase, placement }) =>
      mayExist(phase) && placement?.region === region ? [placement.vmId] : [],
    ),
  );
}
