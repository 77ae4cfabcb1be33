// SPDX-License-Identifier: Apache-2.0

/** Leaves nested commands at once. Control flow of the script, never an error of the simulator. */
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
