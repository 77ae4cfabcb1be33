// SPDX-License-Identifier: Apache-2.0

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

// Rock Ridge: lower-case names and POSIX modes, stored after each directory record. The 1991 edition has a PX
// entry of 36 bytes; strict readers reject any other length for that edition.

/** Readable by root only: a mounted seed contains the join secret. */
const FILE_MODE = 0o100_400;
const DIRECTORY_MODE = 0o040_500;

function entry(signature: string, data: readonly number[]): number[] {
  return [...ascii(signature), data.length + 4, 1, ...data];
}

function attributes(mode: number, links: number): number[] {
  return entry('PX', [...both32(mode), ...both32(links), ...both32(0), ...both32(0)]);
}

function fileUse(name: string): number[] {
  return [...attributes(FILE_MODE, 1), ...entry('NM', [0, ...ascii(name)])];
}

function parentUse(): number[] {
  return attributes(DIRECTORY_MODE, 2);
}

const IDENTIFIER = 'RRIP_1991A';
const DESCRIPTOR =
  'THE ROCK RIDGE INTERCHANGE PROTOCOL PROVIDES SUPPORT FOR POSIX FILE SYSTEM SEMANTICS';
const SOURCE =
  'PLEASE CONTACT DISC PUBLISHER FOR SPECIFICATION SOURCE.  SEE PUBLISHER IDENTIFIER IN PRIMARY VOLUME DESCRIPTOR FOR CONTACT INFORMATION.';

/** Declares the edition in use. It is too long for a record and has its own sector. */
export const EXTENSION_REFERENCE: readonly number[] = entry('ER', [
  IDENTIFIER.length,
  DESCRIPTOR.length,
  SOURCE.length,
  1,
  ...ascii(IDENTIFIER + DESCRIPTOR + SOURCE),
]);

/** The root's own record declares the extension and the location of its reference. */
function rootUse(referenceBlock: number): number[] {
  const reference = [
    ...both32(referenceBlock),
    ...both32(0),
    ...both32(EXTENSION_REFERENCE.length),
  ];
  return [
    ...entry('SP', [0xbe, 0xef, 0]),
    ...attributes(DIRECTORY_MODE, 2),
    ...entry('CE', reference),
  ];
}

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
function recordTime(atMs: number): number[] {
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
