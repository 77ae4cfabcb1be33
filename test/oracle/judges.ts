// SPDX-License-Identifier: Apache-2.0
// The oracle as several processes that take turns: each answers its questions one after the other.

import { type Answer, Judge, type Question } from '../parity/judge.ts';

const PROCESSES = 2;

export class Judges implements AsyncDisposable {
  readonly #judges: readonly Judge[];
  #turn = 0;

  constructor(program: string) {
    this.#judges = Array.from({ length: PROCESSES }, () => new Judge(program));
  }

  ask(question: Question): Promise<Answer> {
    this.#turn += 1;
    const judge = this.#judges[this.#turn % this.#judges.length];
    return judge === undefined ? Promise.reject(new Error('no judge')) : judge.ask(question);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#judges.map((judge) => judge[Symbol.asyncDispose]()));
  }
}
