// SPDX-License-Identifier: Apache-2.0
// How much of messages may be in memory at once, over all calls of a listener. Small ones need not ask: so many calls
// as are let in would fit.

export class MessageRoom {
  readonly #bytes: number;
  #taken = 0;

  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  /** One call's share of it. */
  share(): Share {
    let mine = 0;
    return {
      grow: (bytes) => {
        if (this.#taken + bytes > this.#bytes) return false;
        this.#taken += bytes;
        mine += bytes;
        return true;
      },
      giveBack: () => {
        this.#taken -= mine;
        mine = 0;
      },
    };
  }
}

export interface Share {
  /** False: there is no room for so many more. */
  readonly grow: (bytes: number) => boolean;
  /** All of it. */
  readonly giveBack: () => void;
}
