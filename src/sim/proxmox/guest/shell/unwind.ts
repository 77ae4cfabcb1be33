// SPDX-License-Identifier: Apache-2.0

/** Unwinds nested commands for `exit`, `return`, `break` and `continue`. Control flow of the script, not an error. */
export class Unwind extends Error {
  override readonly name = 'Unwind';
  readonly kind: 'exit' | 'return' | 'break' | 'continue';
  readonly code: number;

  constructor(kind: Unwind['kind'], code: number) {
    super(kind);
    this.kind = kind;
    this.code = code;
  }
}
