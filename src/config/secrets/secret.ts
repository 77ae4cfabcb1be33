// SPDX-License-Identifier: Apache-2.0
// A secret in memory. Printing, logging or serialising it shows only dots.
import { inspect } from 'node:util';

export const MASK = '••••';

export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The only access to the value. Call it where the value is sent, and keep no copy. */
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
