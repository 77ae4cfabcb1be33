// SPDX-License-Identifier: Apache-2.0

/** What passed and what did not; each failure is told at once, with the way to repeat it. */
export class Tally {
  readonly #say: (text: string) => void;
  passed = 0;
  failed = 0;

  constructor(say: (text: string) => void) {
    this.#say = say;
  }

  count(name: string, problems: readonly string[]): void {
    if (problems.length === 0) {
      this.passed += 1;
      return;
    }
    this.failed += 1;
    this.#say([`FAILED ${name}`, ...problems].join('\n    '));
  }
}
