// SPDX-License-Identifier: Apache-2.0

/** Parses a signed 64-bit decimal integer like Go's strconv. Returns undefined for any other text. */
export function readInt64(text: string): bigint | undefined {
  if (!/^[+-]?\d+$/.test(text)) return undefined;
  const value = BigInt(text.replace(/^\+/, ''));
  return BigInt.asIntN(64, value) === value ? value : undefined;
}
