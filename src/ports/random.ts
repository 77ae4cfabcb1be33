// SPDX-License-Identifier: Apache-2.0

/**
 * Randomness and ids. The system's one is cryptographic (machine ids and join tokens come from here); the
 * seeded one of tests repeats itself exactly.
 */
export interface Random {
  /** A version 4 UUID in lower case. */
  uuid(): string;
  /** A whole number from 0 up to, not including, `below`; every value equally likely. `below` ≥ 1. */
  integer(below: number): number;
  /** At least 0, below 1. For jitter. */
  fraction(): number;
  bytes(length: number): Uint8Array;
}
