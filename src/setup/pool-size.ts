// SPDX-License-Identifier: Apache-2.0
import type { PoolConfig } from '../config/index.ts';
import type { MachineSize } from '../model/machine.ts';
import { Bug } from '../ports/errors.ts';

/** Size of machines that are requested without one: the first of a list, the smallest of a span. */
export function defaultSize({ size }: Pick<PoolConfig, 'size'>): MachineSize {
  const first = size.kind === 'span' ? size.min : size.sizes[0];
  if (first === undefined) throw new Bug('BUG', 'a pool in the checked config has no size');
  const { cpu, memoryBytes, diskBytes } = first;
  return { cpu, memoryBytes, diskBytes };
}
