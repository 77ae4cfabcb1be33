// SPDX-License-Identifier: Apache-2.0
import type { CommandResult } from './command.ts';
import type { Stdin, Streams } from './redirects.ts';

/** Streams that collect standard output and standard error as text. */
export class OutputCollector {
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

  result(code: number): Required<CommandResult> {
    return { code, out: this.#out, err: this.#err };
  }
}
