// SPDX-License-Identifier: Apache-2.0
// As much of DER as a certificate needs.

export function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content]);
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const hex = length.toString(16);
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
  return Buffer.concat([Buffer.from([0x80 | bytes.length]), bytes]);
}

export function sequence(...parts: readonly Uint8Array[]): Buffer {
  return der(0x30, ...parts);
}

export function set(...parts: readonly Uint8Array[]): Buffer {
  return der(0x31, ...parts);
}

export function octets(content: Uint8Array): Buffer {
  return der(0x04, content);
}

export function bits(content: Uint8Array, unused = 0): Buffer {
  return der(0x03, Buffer.from([unused]), content);
}

export function integer(positive: Uint8Array): Buffer {
  const isHigh = ((positive[0] ?? 0) & 0x80) !== 0;
  return der(0x02, ...(isHigh ? [Buffer.from([0])] : []), positive);
}

export function utf8(text: string): Buffer {
  return der(0x0c, Buffer.from(text, 'utf8'));
}

export const TRUE = der(0x01, Buffer.from([0xff]));

export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return der(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(value: number): readonly number[] {
  const digits = [value & 0x7f];
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) digits.unshift((rest & 0x7f) | 0x80);
  return digits;
}

/** Two digits of the year until 2049, four from then on: so the standard wants it. */
export function instant(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '');
  const isLate = Number(digits.slice(0, 4)) >= 2050;
  return isLate ? der(0x18, Buffer.from(digits)) : der(0x17, Buffer.from(digits.slice(2)));
}

export function pem(label: string, content: Uint8Array): string {
  const lines =
    Buffer.from(content)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}
