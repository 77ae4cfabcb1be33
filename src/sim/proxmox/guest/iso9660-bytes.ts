// SPDX-License-Identifier: Apache-2.0

/** The image is not one that a guest could mount. The only error that the ISO reader throws. */
export class IsoError extends Error {
  override readonly name = 'IsoError';
}

export const SECTOR_BYTES = 2048;

/** Bounds-checked reading. Numbers that ISO 9660 stores in both byte orders must be equal in both. */
export class IsoBytes {
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get length(): number {
    return this.#bytes.length;
  }

  slice(offset: number, length: number): Uint8Array {
    if (offset < 0 || length < 0 || offset + length > this.#bytes.length) {
      throw new IsoError(
        `truncated: needs ${length} bytes at ${offset}, the image has ${this.#bytes.length}`,
      );
    }
    return this.#bytes.subarray(offset, offset + length);
  }

  byte(offset: number): number {
    return this.slice(offset, 1)[0] ?? 0;
  }

  readBoth16(offset: number): number {
    const little = this.byte(offset) + this.byte(offset + 1) * 0x100;
    const big = this.byte(offset + 2) * 0x100 + this.byte(offset + 3);
    return checkByteOrders(little, big, offset);
  }

  readBoth32(offset: number): number {
    const at = (index: number) => this.byte(offset + index);
    const little = at(0) + at(1) * 2 ** 8 + at(2) * 2 ** 16 + at(3) * 2 ** 24;
    const big = at(4) * 2 ** 24 + at(5) * 2 ** 16 + at(6) * 2 ** 8 + at(7);
    return checkByteOrders(little, big, offset);
  }

  ascii(offset: number, length: number): string {
    return String.fromCharCode(...this.slice(offset, length));
  }

  /** Joliet text: two bytes per character, big-endian. */
  ucs2(offset: number, length: number): string {
    let text = '';
    for (let at = 0; at + 1 < length; at += 2) {
      text += String.fromCharCode(this.byte(offset + at) * 0x100 + this.byte(offset + at + 1));
    }
    return text;
  }
}

function checkByteOrders(little: number, big: number, offset: number): number {
  if (little === big) return little;
  throw new IsoError(`malformed: byte orders disagree at ${offset} (${little} and ${big})`);
}
