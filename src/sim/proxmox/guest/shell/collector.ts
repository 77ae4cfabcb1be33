// SPDX-License-Identifier: Apache-2.0
import type { Outcome } from './command.ts';
import type { Streams } from './redirects.ts';

/** Streams that end in texts. */
export class Collector {
  readonly streams: Streams;
  #out = '';
  #err = '';

  constructor(stdin = '', budget = { steps: 0 }) {
    this.streams = {
      budget,
      stdin: { text: stdin },
      out: (piece) => {
        this.#out += piece;
      },
      err: (piece) => {
        this.#err += piece;
      },
    };
  }

  get out(): string {
    return this.#out;
  }

  outcome(code: number): Required<Outcome> {
    return { code, out: this.#out, err: this.#err };
  }
}
