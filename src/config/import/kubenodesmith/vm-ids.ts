// SPDX-License-Identifier: Apache-2.0
// Ranges of VM ids. Here no two regions may share ids, and each one has a range, also where none was given.

const DEFAULT_FROM = 20_000;
const DEFAULT_COUNT = 1000;

interface Range {
  readonly from: number;
  readonly to: number;
}

export class VmIdRanges {
  readonly #taken: Range[] = [];

  /** Whether the range is free, and from now on taken. */
  take(range: Range): boolean {
    const isFree = this.#taken.every(({ from, to }) => range.to < from || to < range.from);
    if (isFree) this.#taken.push(range);
    return isFree;
  }

  /** A range that nobody has. */
  takeAny(): Range {
    for (let from = DEFAULT_FROM; ; from += DEFAULT_COUNT) {
      const range = { from, to: from + DEFAULT_COUNT - 1 };
      if (this.take(range)) return range;
    }
  }
}
