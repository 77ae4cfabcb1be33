// SPDX-License-Identifier: Apache-2.0
// Writes the seed as a CD image: ISO 9660 level 1 with Rock Ridge and Joliet, volume `cidata`, a few files in
// the root. The same input always gives the same bytes, so uploading a seed twice is idempotent.
import {
  ascii,
  big32,
  both16,
  both32,
  EXTENSION_REFERENCE,
  jolietRoot,
  little32,
  type PlacedFile,
  primaryRoot,
  rootRecord,
  SECTOR_BYTES,
  sectorsOf,
  ucs2,
  volumeTime,
} from './directory.ts';

/** The files that cloud-init's NoCloud data source reads, and their level 1 names. */
const SHORT_NAMES = {
  'meta-data': 'META_DAT',
  'user-data': 'USER_DAT',
  'network-config': 'NETWORK_',
  'vendor-data': 'VENDOR_D',
} as const;

export type SeedFileName = keyof typeof SHORT_NAMES;
export type SeedFiles = Readonly<Partial<Record<SeedFileName, string | Uint8Array>>>;

const LABEL = 'cidata';
/** Sector numbers. The first sixteen sectors are the system area. */
const SECTORS = {
  primary: 16,
  joliet: 17,
  terminator: 18,
  littlePaths: 19,
  bigPaths: 20,
  jolietLittlePaths: 21,
  jolietBigPaths: 22,
  primaryRoot: 23,
  jolietRoot: 24,
  reference: 25,
  files: 26,
} as const;

/**
 * `createdAtMs` is written into the volume. Pass the machine's creation time, not the current time, to get the
 * same bytes again.
 */
export function buildSeedIso(files: SeedFiles, createdAtMs: number): Uint8Array {
  const placed = placeFiles(files);
  const last = placed.at(-1);
  const blocks = last === undefined ? SECTORS.files : last.block + sectorsOf(last.bytes.length);
  const image = new Uint8Array(blocks * SECTOR_BYTES);
  const put = (sector: number, bytes: ArrayLike<number>) => image.set(bytes, sector * SECTOR_BYTES);
  const shared = { label: LABEL, blocks, createdAtMs };
  const [primary, joliet] = volumes(shared);
  put(SECTORS.primary, descriptor(primary));
  put(SECTORS.joliet, descriptor(joliet));
  put(SECTORS.terminator, terminator());
  for (const { littlePathTable: little, bigPathTable: big, root } of [primary, joliet]) {
    put(little, littlePathTable(root));
    put(big, bigPathTable(root));
  }
  const parts = { files: placed, createdAtMs };
  put(
    SECTORS.primaryRoot,
    primaryRoot({ ...parts, block: SECTORS.primaryRoot }, SECTORS.reference),
  );
  put(SECTORS.jolietRoot, jolietRoot({ ...parts, block: SECTORS.jolietRoot }));
  put(SECTORS.reference, EXTENSION_REFERENCE);
  for (const file of placed) put(file.block, file.bytes);
  return image;
}

function volumes(shared: Pick<Volume, 'label' | 'blocks' | 'createdAtMs'>): [Volume, Volume] {
  return [
    {
      ...shared,
      kind: 'primary',
      root: SECTORS.primaryRoot,
      littlePathTable: SECTORS.littlePaths,
      bigPathTable: SECTORS.bigPaths,
    },
    {
      ...shared,
      kind: 'joliet',
      root: SECTORS.jolietRoot,
      littlePathTable: SECTORS.jolietLittlePaths,
      bigPathTable: SECTORS.jolietBigPaths,
    },
  ];
}

function placeFiles(files: SeedFiles): PlacedFile[] {
  const names: readonly SeedFileName[] = [
    'meta-data',
    'user-data',
    'network-config',
    'vendor-data',
  ];
  const placed: PlacedFile[] = [];
  let block: number = SECTORS.files;
  for (const name of names) {
    const content = files[name];
    if (content === undefined) continue;
    const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
    placed.push({ name, shortName: SHORT_NAMES[name], bytes, block });
    block += sectorsOf(bytes.length);
  }
  return placed;
}

// Volume descriptors and path tables, which locate the root directories.

interface Volume {
  readonly kind: 'primary' | 'joliet';
  readonly label: string;
  readonly root: number;
  readonly littlePathTable: number;
  readonly bigPathTable: number;
  readonly blocks: number;
  readonly createdAtMs: number;
}

const APPLICATION = 'PVESCALER';
/** One entry, for the root. */
const PATH_TABLE_BYTES = 10;
/** Joliet level 3. */
const JOLIET_ESCAPE = '%/E';

function descriptor(volume: Volume): Uint8Array {
  const isJoliet = volume.kind === 'joliet';
  const text = (value: string, bytes: number) =>
    isJoliet ? padded(ucs2(value), bytes, [0, 0x20]) : padded(ascii(value), bytes, [0x20]);
  const fields: readonly (readonly [offset: number, bytes: readonly number[]])[] = [
    [0, [isJoliet ? 2 : 1, ...ascii('CD001'), 1]],
    [8, text('', 32)],
    [40, text(volume.label, 32)],
    [80, both32(volume.blocks)],
    [88, isJoliet ? ascii(JOLIET_ESCAPE) : []],
    [120, both16(1)],
    [124, both16(1)],
    [128, both16(SECTOR_BYTES)],
    [132, both32(PATH_TABLE_BYTES)],
    [140, little32(volume.littlePathTable)],
    [148, big32(volume.bigPathTable)],
    [156, rootRecord(volume.root, volume.createdAtMs)],
    // Volume set, publisher, preparer; then the application; then three file names.
    ...[190, 318, 446].map((offset) => [offset, text('', 128)] as const),
    [574, text(APPLICATION, 128)],
    ...[702, 739, 776].map((offset) => [offset, text('', 37)] as const),
    [813, volumeTime(volume.createdAtMs)],
    [830, volumeTime(volume.createdAtMs)],
    [847, volumeTime(undefined)],
    [864, volumeTime(volume.createdAtMs)],
    [881, [1]],
  ];
  const sector = new Uint8Array(SECTOR_BYTES);
  for (const [offset, bytes] of fields) sector.set(bytes, offset);
  return sector;
}

function padded(bytes: readonly number[], length: number, filler: readonly number[]): number[] {
  return Array.from({ length }, (_, index) => bytes[index] ?? filler[index % filler.length] ?? 0);
}

function terminator(): Uint8Array {
  return Uint8Array.from([255, ...ascii('CD001'), 1]);
}

function littlePathTable(root: number): Uint8Array {
  return Uint8Array.from([1, 0, ...little32(root), 1, 0, 0, 0]);
}

function bigPathTable(root: number): Uint8Array {
  return Uint8Array.from([1, 0, ...big32(root), 0, 1, 0, 0]);
}
