// SPDX-License-Identifier: Apache-2.0
// Writes the seed as a CD image: ISO 9660 level 1 with Rock Ridge and Joliet, volume `cidata`, a few files in
// the root. The same input always gives the same bytes, so uploading a seed twice is idempotent.
import { jolietRoot, type PlacedFile, primaryRoot } from './directory.ts';
import { SECTOR_BYTES, sectorsOf } from './fields.ts';
import { EXTENSION_REFERENCE } from './rock-ridge.ts';
import { bigPathTable, descriptor, littlePathTable, terminator, type Volume } from './volume.ts';

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
