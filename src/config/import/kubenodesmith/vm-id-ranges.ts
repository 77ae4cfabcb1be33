// SPDX-License-Identifier: Apache-2.0
// Ranges of VM ids of the imported regions. Regions must not share ids, and every region needs a range.

import {
  DEFAULT_VM_ID_RANGE,
  VM_ID_MAX,
  VM_ID_MIN,
  type VmIdRange,
  vmIdRangesOverlap,
} from '../../values/vm-id-range.ts';

const PLACEHOLDER_COUNT = 1000;

export class VmIdRangeAllocator {
  readonly #reserved: VmIdRange[] = [];

  /** Reserves the range; false when it overlaps a reserved one. */
  reserve(range: VmIdRange): boolean {
    const isFree = this.#reserved.every((other) => !vmIdRangesOverlap(range, other));
    if (isFree) this.#reserved.push(range);
    return isFree;
  }

  /** Reserves a free range for a provider without a usable one. */
  reserveAny(): VmIdRange {
    const { from: defaultFrom } = DEFAULT_VM_ID_RANGE;
    const starts = [defaultFrom, ...this.#reserved.map(({ to }) => to + 1), VM_ID_MIN];
    const ranges = starts.map((from) => ({ from, to: from + PLACEHOLDER_COUNT - 1 }));
    const free = ranges.find((range) => range.to <= VM_ID_MAX && this.reserve(range));
    return free ?? { from: defaultFrom, to: defaultFrom + PLACEHOLDER_COUNT - 1 };
  }
}
