// SPDX-License-Identifier: Apache-2.0

export class Tally {
  passed = 0;
  failed = 0;
  readonly #log: (text: string) => void;

  constructor(log: (text: string) => void) {
    this.#log = log;
  }

  check(name: string, hasPassed: boolean, details: () => string): void {
    if (hasPassed) {
      this.passed += 1;
      return;
    }
    this.failed += 1;
    this.#log(`FAILED ${name}: ${details()}`);
  }
}
