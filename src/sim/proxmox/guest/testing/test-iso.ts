// SPDX-License-Identifier: Apache-2.0
// Builds minimal ISO images for tests: one root directory with plain, Joliet or Rock Ridge names. Independent of the
// reader under test and of the product's writer.

export interface TestIsoOptions {
  readonly label?: string;
  readonly files: Readonly<Record<string, string | Uint8Array>>;
  readonly joliet?: boolean;
  readonly rockRidge?: boolean;
}

const SECTOR_BYTES = 2048;
const PRIMARY_ROOT = 20;
const JOLIET_ROOT = 21;
const CONTINUATIONS = 22;
const FIRST_FILE = 23;

interface PlacedFile {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly block: number;
}

export function buildTestIso(options: TestIsoOptions): Uint8Array {
  let block = FIRST_FILE;
  const files: PlacedFile[] = Object.entries(options.files).map(([name, content]) => {
    const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
    const placed = { name, bytes, block };
    block += Math.max(1, Math.ceil(bytes.length / SECTOR_BYTES));
    return placed;
  });
  const image = new Uint8Array(block * SECTOR_BYTES);
  const label = options.label ?? 'cidata';
  image.set(
    buildDescriptor({
      type: 1,
      label: encodeLatin1(label.padEnd(32)),
      root: PRIMARY_ROOT,
      blocks: block,
    }),
    16 * SECTOR_BYTES,
  );
  let next = 17;
  if (options.joliet === true) {
    const wide = encodeUcs2(label.padEnd(16));
    image.set(
      buildDescriptor({ type: 2, label: wide, root: JOLIET_ROOT, blocks: block }),
      next * SECTOR_BYTES,
    );
    image.set(
      buildDirectory(files.map((file) => buildRecord(file, encodeUcs2(file.name)))),
      JOLIET_ROOT * SECTOR_BYTES,
    );
    next += 1;
  }
  image.set([255, ...encodeLatin1('CD001'), 1], next * SECTOR_BYTES);
  image.set(
    buildPrimaryDirectory(files, options.rockRidge === true, image),
    PRIMARY_ROOT * SECTOR_BYTES,
  );
  for (const file of files) image.set(file.bytes, file.block * SECTOR_BYTES);
  return image;
}

interface Descriptor {
  readonly type: 1 | 2;
  readonly label: Uint8Array;
  readonly root: number;
  readonly blocks: number;
}

function buildDescriptor({ type, label, root, blocks }: Descriptor): Uint8Array {
  const sector = new Uint8Array(SECTOR_BYTES);
  sector.set([type, ...encodeLatin1('CD001'), 1]);
  sector.set(label, 40);
  sector.set(encodeBoth32(blocks), 80);
  if (type === 2) sector.set(encodeLatin1('%/E'), 88);
  sector.set(encodeBoth16(SECTOR_BYTES), 128);
  sector.set(buildDotRecords(root, 0).self, 156);
  return sector;
}

function buildPrimaryDirectory(
  files: readonly PlacedFile[],
  rockRidge: boolean,
  image: Uint8Array,
): Uint8Array {
  if (!rockRidge) {
    return buildDirectory(
      files.map((file) => buildRecord(file, encodeLatin1(`${file.name.toUpperCase()}.;1`))),
    );
  }
  const records = files.map((file, index) => {
    const half = Math.floor(file.name.length / 2);
    // The second half of each name is in the continuation area.
    const rest = buildSuspEntry('NM', [0, ...encodeLatin1(file.name.slice(half))]);
    const at = index * 128;
    image.set(rest, CONTINUATIONS * SECTOR_BYTES + at);
    const use = [
      ...buildSuspEntry('PX', [
        ...encodeBoth32(0o100600),
        ...encodeBoth32(1),
        ...encodeBoth32(0),
        ...encodeBoth32(0),
      ]),
      ...buildSuspEntry('NM', [1, ...encodeLatin1(file.name.slice(0, half))]),
      ...buildSuspEntry('CE', [
        ...encodeBoth32(CONTINUATIONS),
        ...encodeBoth32(at),
        ...encodeBoth32(rest.length),
      ]),
    ];
    return buildRecord(file, encodeLatin1(`F${index}.;1`), Uint8Array.from(use));
  });
  return buildDirectory(records, buildSuspEntry('SP', [0xbe, 0xef, 0]));
}

function buildDirectory(
  records: readonly Uint8Array[],
  rootUse: Uint8Array = new Uint8Array(),
): Uint8Array {
  const { self, parent } = buildDotRecords(0, 0, rootUse);
  const sector = new Uint8Array(SECTOR_BYTES);
  let at = 0;
  for (const each of [self, parent, ...records]) {
    sector.set(each, at);
    at += each.length;
  }
  return sector;
}

function buildDotRecords(
  block: number,
  name: number,
  use: Uint8Array = new Uint8Array(),
): { self: Uint8Array; parent: Uint8Array } {
  const place = { block, bytes: new Uint8Array(SECTOR_BYTES), name: '' };
  const self = buildRecord(place, Uint8Array.of(name), use);
  self[25] = 2;
  const parent = buildRecord(place, Uint8Array.of(1));
  parent[25] = 2;
  return { self, parent };
}

function buildRecord(
  file: PlacedFile,
  name: Uint8Array,
  use: Uint8Array = new Uint8Array(),
): Uint8Array {
  const nameEnd = 33 + name.length + (name.length % 2 === 0 ? 1 : 0);
  const length = nameEnd + use.length + (use.length % 2);
  const bytes = new Uint8Array(length);
  bytes.set([length, 0, ...encodeBoth32(file.block), ...encodeBoth32(file.bytes.length)]);
  bytes.set(encodeBoth16(1), 28);
  bytes[32] = name.length;
  bytes.set(name, 33);
  bytes.set(use, nameEnd);
  return bytes;
}

function buildSuspEntry(signature: string, data: readonly number[]): Uint8Array {
  return Uint8Array.from([...encodeLatin1(signature), data.length + 4, 1, ...data]);
}

function encodeBoth16(value: number): number[] {
  const [low, high] = [value & 0xff, value >>> 8];
  return [low, high, high, low];
}

function encodeBoth32(value: number): number[] {
  const little = [0, 8, 16, 24].map((shift) => (value >>> shift) & 0xff);
  return [...little, ...little.toReversed()];
}

function encodeLatin1(text: string): Uint8Array {
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}

function encodeUcs2(text: string): Uint8Array {
  return Uint8Array.from(
    Array.from(text).flatMap((char) => [char.charCodeAt(0) >>> 8, char.charCodeAt(0) & 0xff]),
  );
}
