// SPDX-License-Identifier: Apache-2.0
// Images for tests, laid out by hand: one root directory, as few sectors as the standard allows, any of the three
// ways of naming. Independent of the reader under test and of the product's writer.

export interface TinyIsoOptions {
  readonly label?: string;
  readonly files: Readonly<Record<string, string | Uint8Array>>;
  readonly joliet?: boolean;
  readonly rockRidge?: boolean;
}

const SECTOR = 2048;
const PRIMARY_ROOT = 20;
const JOLIET_ROOT = 21;
const CONTINUATIONS = 22;
const FIRST_FILE = 23;

interface Placed {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly block: number;
}

export function tinyIso(options: TinyIsoOptions): Uint8Array {
  let block = FIRST_FILE;
  const files: Placed[] = Object.entries(options.files).map(([name, content]) => {
    const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
    const placed = { name, bytes, block };
    block += Math.max(1, Math.ceil(bytes.length / SECTOR));
    return placed;
  });
  const image = new Uint8Array(block * SECTOR);
  const label = options.label ?? 'cidata';
  image.set(
    descriptor({ type: 1, label: latin(label.padEnd(32)), root: PRIMARY_ROOT, blocks: block }),
    16 * SECTOR,
  );
  let next = 17;
  if (options.joliet === true) {
    const wide = ucs2(label.padEnd(16));
    image.set(
      descriptor({ type: 2, label: wide, root: JOLIET_ROOT, blocks: block }),
      next * SECTOR,
    );
    image.set(directory(files.map((file) => record(file, ucs2(file.name)))), JOLIET_ROOT * SECTOR);
    next += 1;
  }
  image.set([255, ...latin('CD001'), 1], next * SECTOR);
  image.set(primaryDirectory(files, options.rockRidge === true, image), PRIMARY_ROOT * SECTOR);
  for (const file of files) image.set(file.bytes, file.block * SECTOR);
  return image;
}

interface Descriptor {
  readonly type: 1 | 2;
  readonly label: Uint8Array;
  readonly root: number;
  readonly blocks: number;
}

function descriptor({ type, label, root, blocks }: Descriptor): Uint8Array {
  const sector = new Uint8Array(SECTOR);
  sector.set([type, ...latin('CD001'), 1]);
  sector.set(label, 40);
  sector.set(both32(blocks), 80);
  if (type === 2) sector.set(latin('%/E'), 88);
  sector.set(both16(SECTOR), 128);
  sector.set(dots(root, 0).self, 156);
  return sector;
}

function primaryDirectory(
  files: readonly Placed[],
  rockRidge: boolean,
  image: Uint8Array,
): Uint8Array {
  if (!rockRidge) {
    return directory(files.map((file) => record(file, latin(`${file.name.toUpperCase()}.;1`))));
  }
  const records = files.map((file, index) => {
    const half = Math.floor(file.name.length / 2);
    // The second half of each name is in the continuation area.
    const rest = susp('NM', [0, ...latin(file.name.slice(half))]);
    const at = index * 128;
    image.set(rest, CONTINUATIONS * SECTOR + at);
    const use = [
      ...susp('PX', [...both32(0o100600), ...both32(1), ...both32(0), ...both32(0)]),
      ...susp('NM', [1, ...latin(file.name.slice(0, half))]),
      ...susp('CE', [...both32(CONTINUATIONS), ...both32(at), ...both32(rest.length)]),
    ];
    return record(file, latin(`F${index}.;1`), Uint8Array.from(use));
  });
  return directory(records, susp('SP', [0xbe, 0xef, 0]));
}

function directory(
  records: readonly Uint8Array[],
  rootUse: Uint8Array = new Uint8Array(),
): Uint8Array {
  const { self, parent } = dots(0, 0, rootUse);
  const sector = new Uint8Array(SECTOR);
  let at = 0;
  for (const each of [self, parent, ...records]) {
    sector.set(each, at);
    at += each.length;
  }
  return sector;
}

function dots(
  block: number,
  name: number,
  use: Uint8Array = new Uint8Array(),
): { self: Uint8Array; parent: Uint8Array } {
  const place = { block, bytes: new Uint8Array(SECTOR), name: '' };
  const self = record(place, Uint8Array.of(name), use);
  self[25] = 2;
  const parent = record(place, Uint8Array.of(1));
  parent[25] = 2;
  return { self, parent };
}

function record(file: Placed, name: Uint8Array, use: Uint8Array = new Uint8Array()): Uint8Array {
  const nameEnd = 33 + name.length + (name.length % 2 === 0 ? 1 : 0);
  const length = nameEnd + use.length + (use.length % 2);
  const bytes = new Uint8Array(length);
  bytes.set([length, 0, ...both32(file.block), ...both32(file.bytes.length)]);
  bytes.set(both16(1), 28);
  bytes[32] = name.length;
  bytes.set(name, 33);
  bytes.set(use, nameEnd);
  return bytes;
}

function susp(signature: string, data: readonly number[]): Uint8Array {
  return Uint8Array.from([...latin(signature), data.length + 4, 1, ...data]);
}

function both16(value: number): number[] {
  const [low, high] = [value & 0xff, value >>> 8];
  return [low, high, high, low];
}

function both32(value: number): number[] {
  const little = [0, 8, 16, 24].map((shift) => (value >>> shift) & 0xff);
  return [...little, ...little.toReversed()];
}

function latin(text: string): Uint8Array {
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}

function ucs2(text: string): Uint8Array {
  return Uint8Array.from(
    Array.from(text).flatMap((char) => [char.charCodeAt(0) >>> 8, char.charCodeAt(0) & 0xff]),
  );
}
