// SPDX-License-Identifier: Apache-2.0

/**
 * The only source of randomness. The system implementation is cryptographic, because machine ids and join tokens use
 * it; the seeded implementation for tests is deterministic.
 */
export interface Random {
  /** A version 4 UUID in lower case. */
  uuid(): string;
  /** A uniformly distributed integer from 0 to `below` - 1. `below` is at least 1. */
  integer(below: number): number;
  /** At least 0, below 1. For jitter. */
  fraction(): number;
  bytes(length: number): Uint8Array;
}
