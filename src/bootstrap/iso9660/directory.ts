// SPDX-License-Identifier: Apache-2.0
import { ascii, both16, both32, recordTime, SECTOR_BYTES, ucs2 } from './fields.ts';
import { fileUse, parentUse, rootUse } from './rock-ridge.ts';

export interface PlacedFile {
  readonly name: string;
  /** The name for readers without Rock Ridge and Joliet: eight upper-case characters, no extension. */
  readonly shortName: string;
  readonly bytes: Uint8Array;
  readonly block: number;
}

interface Extent {
  readonly block: number;
  readonly length: number;
}

interface RecordParts {
  readonly identifier: readonly number[];
  readonly extent: Extent;
  readonly isDirectory: boolean;
  readonly createdAtMs: number;
  readonly systemUse?: readonly number[];
}

function directoryRecord({ identifier, extent, systemUse = [], ...rest }: RecordParts): number[] {
  const named = [...identifier, ...(identifier.length % 2 === 0 ? [0] : [])];
  const use = [...systemUse, ...(systemUse.length % 2 === 0 ? [] : [0])];
  return [
    33 + named.length + use.length,
    0,
    ...both32(extent.block),
    ...both32(extent.length),
    ...recordTime(rest.createdAtMs),
    rest.isDirectory ? 2 : 0,
    0,
    0,
    ...both16(1),
    identifier.length,
    ...named,
    ...use,
  ];
}

/** The root directory record in a volume descriptor. A seed's root fits into one sector. */
export function rootRecord(block: number, createdAtMs: number): number[] {
  return directoryRecord(selfRecord(block, createdAtMs));
}

function selfRecord(block: number, createdAtMs: number): RecordParts {
  return {
    identifier: [0],
    extent: { block, length: SECTOR_BYTES },
    isDirectory: true,
    createdAtMs,
  };
}

export interface DirectoryParts {
  readonly block: number;
  readonly files: readonly PlacedFile[];
  readonly createdAtMs: number;
}

/** The root directory with short names and Rock Ridge. The standard requires records sorted by name. */
export function primaryRoot(parts: DirectoryParts, referenceBlock: number): number[] {
  const { block, createdAtMs, files } = parts;
  const sorted = files.toSorted((a, b) => (a.shortName < b.shortName ? -1 : 1));
  return [
    ...directoryRecord({ ...selfRecord(block, createdAtMs), systemUse: rootUse(referenceBlock) }),
    ...directoryRecord({
      ...selfRecord(block, createdAtMs),
      identifier: [1],
      systemUse: parentUse(),
    }),
    ...sorted.flatMap((file) =>
      directoryRecord({
        ...fileRecord(file, createdAtMs),
        identifier: ascii(`${file.shortName}.;1`),
        systemUse: fileUse(file.name),
      }),
    ),
  ];
}

export function jolietRoot({ block, createdAtMs, files }: DirectoryParts): number[] {
  const sorted = files.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return [
    ...directoryRecord(selfRecord(block, createdAtMs)),
    ...directoryRecord({ ...selfRecord(block, createdAtMs), identifier: [1] }),
    ...sorted.flatMap((file) =>
      directoryRecord({ ...fileRecord(file, createdAtMs), identifier: ucs2(file.name) }),
    ),
  ];
}

function fileRecord({ block, bytes }: PlacedFile, createdAtMs: number) {
  return { extent: { block, length: bytes.length }, isDirectory: false, createdAtMs };
}
