// SPDX-License-Identifier: Apache-2.0
// The seed as a CD: ISO 9660 level 1 with Rock Ridge and Joliet beside it, volume `cidata`, a handful of files
// in the root. The same input always gives the same bytes: a seed that is uploaded twice is one seed.
import { jolietRoot, type PlacedFile, primaryRoot } from './directory.ts';
import { SECTOR_BYTES, sectorsOf } from './fields.ts';
import { EXTENSION_REFERENCE } from './rock-ridge.ts';
import { bigPathTable, descriptor, littlePathTable, terminator, type Volume } from './volume.ts';

/** The files that cloud-init's NoCloud source reads, and their names for readers of level 1. */
const SHORT_NAMES = {
  'meta-data': 'META_DAT',
  'user-data': 'USER_DAT',
  'network-config': 'NETWORK_',
  'vendor-data': 'VENDOR_D',
} as const;

export type SeedFileName = keyof typeof SHORT_NAMES;
export type SeedFiles = Readonly<Partial<Record<SeedFileName, string | Uint8Array>>>;

const LABEL = 'cidata';
/** Sectors, after sixteen that belong to whoever wants to boot. */
const AT = {
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

/** `createdAtMs` is written into the volume; pass the machine's, not the clock's, to get the same bytes again. */
export function seedIso(files: SeedFiles, createdAtMs: number): Uint8Array {
  const placed = place(files);
  const last = placed.at(-1);
  const blocks = last === undefined ? AT.files : last.block + sectorsOf(last.bytes.length);
  const image = new Uint8Array(blocks * SECTOR_BYTES);
  const put = (sector: number, bytes: ArrayLike<number>) => image.set(bytes, sector * SECTOR_BYTES);
  const shared = { label: LABEL, blocks, createdAtMs };
  const [primary, joliet] = volumes(shared);
  put(AT.primary, descriptor(primary));
  put(AT.joliet, descriptor(joliet));
  put(AT.terminator, terminator());
  for (const { littlePathTable: little, bigPathTable: big, root } of [primary, joliet]) {
    put(little, littlePathTable(root));
    put(big, bigPathTable(root));
  }
  const parts = { files: placed, createdAtMs };
  put(AT.primaryRoot, primaryRoot({ ...parts, block: AT.primaryRoot }, AT.reference));
  put(AT.jolietRoot, jolietRoot({ ...parts, block: AT.jolietRoot }));
  put(AT.reference, EXTENSION_REFERENCE);
  for (const file of placed) put(file.block, file.bytes);
  return image;
}

function volumes(shared: Pick<Volume, 'label' | 'blocks' | 'createdAtMs'>): [Volume, Volume] {
  return [
    {
      ...shared,
      kind: 'primary',
      root: AT.primaryRoot,
      littlePathTable: AT.littlePaths,
      bigPathTable: AT.bigPaths,
    },
    {
      ...shared,
      kind: 'joliet',
      root: AT.jolietRoot,
      littlePathTable: AT.jolietLittlePaths,
      bigPathTable: AT.jolietBigPaths,
    },
  ];
}

function place(files: SeedFiles): PlacedFile[] {
  const names: readonly SeedFileName[] = [
    'meta-data',
    'user-data',
    'network-config',
    'vendor-data',
  ];
  const placed: PlacedFile[] = [];
  let block: number = AT.files;
  for (const name of names) {
    const content = files[name];
    if (content === undefined) continue;
    const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
    placed.push({ name, shortName: SHORT_NAMES[name], bytes, block });
    block += sectorsOf(bytes.length);
  }
  return placed;
}
