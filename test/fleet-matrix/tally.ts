// SPDX-License-Identifier: Apache-2.0

/** Counts passed and failed tests and prints each failure immediately. */
export class Tally {
  readonly #print: (text: string) => void;
  passed = 0;
  failed = 0;

  constructor(print: (text: string) => void) {
    this.#print = print;
  }

  count(name: string, problems: readonly string[]): void {
    if (problems.length === 0) {
      this.passed += 1;
      return;
    }
    this.failed += 1;
    this.#print([`FAILED ${name}`, ...problems].join('\n    '));
  }
}
