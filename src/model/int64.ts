// SPDX-License-Identifier: Apache-2.0

/** A signed 64 bit decimal integer as Go's strconv reads it; undefined for anything else. */
export function readInt64(text: string): bigint | undefined {
  if (!/^[+-]?\d+$/.test(text)) return undefined;
  const value = BigInt(text.replace(/^\+/, ''));
  return BigInt.asIntN(64, value) === value ? value : undefined;
}
