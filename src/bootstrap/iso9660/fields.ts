// SPDX-License-Identifier: Apache-2.0
// Encoding of numbers, text and times in ISO 9660. Most numbers are stored in both byte orders.

export const SECTOR_BYTES = 2048;

export function little32(value: number): number[] {
  return [0, 8, 16, 24].map((shift) => (value >>> shift) & 0xff);
}

export function big32(value: number): number[] {
  return little32(value).toReversed();
}

export function both16(value: number): number[] {
  const [low, high] = [value & 0xff, value >>> 8];
  return [low, high, high, low];
}

export function both32(value: number): number[] {
  return [...little32(value), ...big32(value)];
}

export function ascii(text: string): number[] {
  return Array.from(text, (char) => char.charCodeAt(0));
}

/** Joliet's UCS-2, big-endian. */
export function ucs2(text: string): number[] {
  return ascii(text).flatMap((code) => [code >>> 8, code & 0xff]);
}

/** Seven bytes of a directory record; the last is the time zone in units of 15 minutes. */
export function recordTime(atMs: number): number[] {
  const at = new Date(atMs);
  return [
    at.getUTCFullYear() - 1900,
    at.getUTCMonth() + 1,
    at.getUTCDate(),
    at.getUTCHours(),
    at.getUTCMinutes(),
    at.getUTCSeconds(),
    0,
  ];
}

/** Sixteen digits and the time zone; all zeros mean "not specified". */
export function volumeTime(atMs: number | undefined): number[] {
  if (atMs === undefined) return [...ascii('0'.repeat(16)), 0];
  const digits = new Date(atMs).toISOString().replace(/\D/g, '').slice(0, 14);
  return [...ascii(`${digits}00`), 0];
}

export function sectorsOf(bytes: number): number {
  return Math.ceil(bytes / SECTOR_BYTES);
}
