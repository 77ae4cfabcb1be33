// SPDX-License-Identifier: Apache-2.0
import type { Outcome } from './command.ts';
import type { Stdin, Streams } from './redirects.ts';

/** Streams that end in texts. */
export class Collector {
  readonly streams: Streams;
  #out = '';
  #err = '';

  constructor(stdin: string | Stdin = '', budget = { steps: 0 }) {
    this.streams = {
      budget,
      stdin: typeof stdin === 'string' ? { text: stdin } : stdin,
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
