// SPDX-License-Identifier: Apache-2.0
// Ranges of VM ids. Here no two regions may share ids, and each one has a range, also where none was given.

import { VM_ID_MAX, VM_ID_MIN } from '../../values/vm-id-range.ts';

const DEFAULT_FROM = 20_000;
const DEFAULT_COUNT = 1000;

interface Range {
  readonly from: number;
  readonly to: number;
}

export class VmIdRangeAllocator {
  readonly #taken: Range[] = [];

  /** Whether the range is free, and from now on taken. */
  reserve(range: Range): boolean {
    const isFree = this.#taken.every(({ from, to }) => range.to < from || to < range.from);
    if (isFree) this.#taken.push(range);
    return isFree;
  }

  /** A range that nobody has. */
  reserveAny(): Range {
    const starts = [DEFAULT_FROM, ...this.#taken.map(({ to }) => to + 1), VM_ID_MIN];
    const ranges = starts.map((from) => ({ from, to: from + DEFAULT_COUNT - 1 }));
    const free = ranges.find((range) => range.to <= VM_ID_MAX && this.reserve(range));
    return free ?? { from: DEFAULT_FROM, to: DEFAULT_FROM + DEFAULT_COUNT - 1 };
  }
}
