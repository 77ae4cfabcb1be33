// SPDX-License-Identifier: Apache-2.0

export class Tally {
  passed = 0;
  failed = 0;
  readonly #say: (text: string) => void;

  constructor(say: (text: string) => void) {
    this.#say = say;
  }

  check(name: string, isRight: boolean, why: () => string): void {
    if (isRight) {
      this.passed += 1;
      return;
    }
    this.failed += 1;
    this.#say(`FAILED ${name}: ${why()}`);
  }
}
