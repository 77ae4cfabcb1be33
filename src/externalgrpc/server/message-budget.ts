// SPDX-License-Identifier: Apache-2.0
// Limits the memory for request messages over all calls of a listener. Small messages are not counted: the limit on
// concurrent calls bounds them.

export class MessageBudget {
  readonly #limitBytes: number;
  #usedBytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** The share of one call. */
  openShare(): BudgetShare {
    let ownBytes = 0;
    return {
      grow: (bytes) => {
        if (this.#usedBytes + bytes > this.#limitBytes) return false;
        this.#usedBytes += bytes;
        ownBytes += bytes;
        return true;
      },
      release: () => {
        this.#usedBytes -= ownBytes;
        ownBytes = 0;
      },
    };
  }
}

export interface BudgetShare {
  /** False when the limit does not allow this many more bytes. */
  readonly grow: (bytes: number) => boolean;
  /** Releases the whole share. */
  readonly release: () => void;
}
