// SPDX-License-Identifier: Apache-2.0
import { mayExist } from '../../model/machine.ts';
import type { Turn } from '../turn.ts';

/** The ids of a region that machines stand for, whatever is there under them. */
export function claimedVmIds({ books }: Turn, region: string): ReadonlySet<number> {
  return new Set(
    books.machines.flatMap(({ phase, placement }) =>
      mayExist(phase) && placement?.region === region ? [placement.vmId] : [],
    ),
  );
}
