// SPDX-License-Identifier: Apache-2.0
// A secret in memory. Whoever prints, logs or serialises it by accident gets dots.
import { inspect } from 'node:util';

export const MASK = '••••';

export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The only way to the value; call it where it is sent and keep no copy. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return MASK;
  }

  toJSON(): string {
    return MASK;
  }

  [Symbol.toPrimitive](): string {
    return MASK;
  }

  [inspect.custom](): string {
    return MASK;
  }
}
