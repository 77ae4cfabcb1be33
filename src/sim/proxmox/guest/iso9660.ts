// SPDX-License-Identifier: Apache-2.0
// Reads ISO 9660 as a Linux guest mounts it: Rock Ridge names if present, else Joliet names, else plain names in
// lower case. Implements the standards (ECMA-119, Joliet, SUSP/RRIP) independently of the seed image writer: a reader
// that shares code with the writer has the same mistakes.
import { IsoBytes, IsoError, SECTOR_BYTES } from './iso9660-bytes.ts';
import { type ByteRange, readRockRidge, readSuspSkip } from './iso9660-rock-ridge.ts';

export { IsoError } from './iso9660-bytes.ts';

export interface IsoFile {
  readonly bytes: Uint8Array;
  /** POSIX mode bits; undefined without Rock Ridge. */
  readonly mode: number | undefined;
}

export interface IsoImage {
  /** The volume id of the primary descriptor, without its padding. */
  readonly label: string;
  readonly names: 'rock-ridge' | 'joliet' | 'plain';
  /** By path without a leading slash. */
  readonly files: ReadonlyMap<string, IsoFile>;
}

interface Volume {
  readonly label: string;
  readonly isJoliet: boolean;
  readonly root: Extent;
}

interface Extent {
  readonly block: number;
  readonly length: number;
}

interface DirectoryRecord extends Extent {
  readonly isDirectory: boolean;
  /** The next record continues the same file. */
  readonly continues: boolean;
  readonly identifier: ByteRange;
  readonly systemUse: ByteRange;
}

interface NamingScheme {
  readonly kind: IsoImage['names'];
  readonly skip: number;
}

interface DirectoryWalk {
  readonly bytes: IsoBytes;
  readonly naming: NamingScheme;
  readonly files: Map<string, IsoFile>;
  readonly visited: Set<number>;
}

const FIRST_DESCRIPTOR = 16;
const MAX_DESCRIPTORS = 64;
const MAX_FILES = 4096;
const MAX_DIRECTORY_DEPTH = 64;
const JOLIET_ESCAPES: readonly string[] = ['%/@', '%/C', '%/E'];

/** Throws only IsoError, for any input that is not a readable image. */
export function readIso(image: Uint8Array): IsoImage {
  const bytes = new IsoBytes(image);
  const volumes = readVolumes(bytes);
  const primary = volumes.find((volume) => !volume.isJoliet);
  if (primary === undefined) throw new IsoError('malformed: no primary volume descriptor');
  const joliet = volumes.find((volume) => volume.isJoliet);
  const naming = chooseNaming(bytes, { primary, joliet });
  const root = naming.kind === 'joliet' && joliet !== undefined ? joliet.root : primary.root;
  const walk: DirectoryWalk = { bytes, naming, files: new Map(), visited: new Set() };
  walkDirectory(walk, root, '');
  return { label: primary.label, names: naming.kind, files: walk.files };
}

function readVolumes(bytes: IsoBytes): Volume[] {
  const volumes: Volume[] = [];
  for (let index = 0; index < MAX_DESCRIPTORS; index += 1) {
    const offset = (FIRST_DESCRIPTOR + index) * SECTOR_BYTES;
    bytes.slice(offset, SECTOR_BYTES);
    if (bytes.ascii(offset + 1, 5) !== 'CD001') {
      throw new IsoError(`malformed: no volume descriptor at sector ${FIRST_DESCRIPTOR + index}`);
    }
    const type = bytes.byte(offset);
    if (type === 255) return volumes;
    if (type === 1) volumes.push(readVolume(bytes, offset, false));
    if (type === 2 && hasJolietEscape(bytes, offset)) volumes.push(readVolume(bytes, offset, true));
  }
  throw new IsoError('malformed: no volume descriptor set terminator');
}

function hasJolietEscape(bytes: IsoBytes, offset: number): boolean {
  return JOLIET_ESCAPES.includes(bytes.ascii(offset + 88, 3));
}

function readVolume(bytes: IsoBytes, offset: number, isJoliet: boolean): Volume {
  const blockBytes = bytes.readBoth16(offset + 128);
  if (blockBytes !== SECTOR_BYTES) {
    throw new IsoError(`malformed: logical blocks of ${blockBytes} bytes`);
  }
  const sizeBytes = bytes.readBoth32(offset + 80) * SECTOR_BYTES;
  if (sizeBytes > bytes.length) {
    throw new IsoError(`truncated: the volume has ${sizeBytes} bytes, the image ${bytes.length}`);
  }
  const label = isJoliet ? bytes.ucs2(offset + 40, 32) : bytes.ascii(offset + 40, 32);
  const root = readRecord(bytes, offset + 156);
  if (!root.isDirectory) throw new IsoError('malformed: the root is not a directory');
  return { label: label.trimEnd(), isJoliet, root };
}

function chooseNaming(
  bytes: IsoBytes,
  volumes: { readonly primary: Volume; readonly joliet: Volume | undefined },
): NamingScheme {
  const self = readRecord(bytes, volumes.primary.root.block * SECTOR_BYTES);
  const skip = readSuspSkip(bytes, self.systemUse);
  if (skip !== undefined) return { kind: 'rock-ridge', skip };
  return { kind: volumes.joliet === undefined ? 'plain' : 'joliet', skip: 0 };
}

function readRecord(bytes: IsoBytes, offset: number): DirectoryRecord {
  const length = bytes.byte(offset);
  const nameLength = bytes.byte(offset + 32);
  const systemUse = offset + 33 + nameLength + (nameLength % 2 === 0 ? 1 : 0);
  if (length < 34 || systemUse > offset + length) {
    throw new IsoError(`malformed: directory record of ${length} bytes at ${offset}`);
  }
  if (bytes.byte(offset + 26) !== 0) throw new IsoError('malformed: interleaved files');
  const flags = bytes.byte(offset + 25);
  return {
    block: bytes.readBoth32(offset + 2) + bytes.byte(offset + 1),
    length: bytes.readBoth32(offset + 10),
    isDirectory: (flags & 0x02) !== 0,
    continues: (flags & 0x80) !== 0,
    identifier: { offset: offset + 33, length: nameLength },
    systemUse: { offset: systemUse, length: offset + length - systemUse },
  };
}

function walkDirectory(walk: DirectoryWalk, directory: Extent, path: string): void {
  if (walk.visited.has(directory.block) || path.split('/').length > MAX_DIRECTORY_DEPTH) {
    throw new IsoError(`malformed: directory ${path || '/'} contains itself`);
  }
  walk.visited.add(directory.block);
  let pieces: Uint8Array[] = [];
  for (const record of readDirectoryRecords(walk.bytes, directory)) {
    const { name, mode } = readNameAndMode(walk, record);
    if (record.isDirectory) {
      walkDirectory(walk, record, `${path}${name}/`);
      continue;
    }
    pieces.push(walk.bytes.slice(record.block * SECTOR_BYTES, record.length));
    if (record.continues) continue;
    addFile(walk, `${path}${name}`, { bytes: concatExtents(pieces), mode });
    pieces = [];
  }
}

function addFile(walk: DirectoryWalk, path: string, file: IsoFile): void {
  if (walk.files.size >= MAX_FILES) throw new IsoError(`malformed: more than ${MAX_FILES} files`);
  walk.files.set(path, file);
}

/** All records except `.` and `..`. Records do not cross sectors; length 0 means the rest of the sector is padding. */
function* readDirectoryRecords(bytes: IsoBytes, directory: Extent): Generator<DirectoryRecord> {
  const start = directory.block * SECTOR_BYTES;
  bytes.slice(start, directory.length);
  let at = 0;
  while (at < directory.length) {
    const length = bytes.byte(start + at);
    const rest = SECTOR_BYTES - (at % SECTOR_BYTES);
    if (length === 0) {
      at += rest;
      continue;
    }
    if (length > rest)
      throw new IsoError(`malformed: directory record crosses a sector at ${start + at}`);
    const record = readRecord(bytes, start + at);
    if (!isSelfOrParent(bytes, record)) yield record;
    at += length;
  }
}

function isSelfOrParent(bytes: IsoBytes, record: DirectoryRecord): boolean {
  return record.identifier.length === 1 && bytes.byte(record.identifier.offset) <= 1;
}

function readNameAndMode(
  walk: DirectoryWalk,
  record: DirectoryRecord,
): { name: string; mode: number | undefined } {
  const { bytes, naming } = walk;
  const { offset, length } = record.identifier;
  if (naming.kind === 'joliet')
    return { name: stripVersion(bytes.ucs2(offset, length)), mode: undefined };
  const plain = stripVersion(bytes.ascii(offset, length)).replace(/\.$/, '').toLowerCase();
  if (naming.kind === 'plain') return { name: plain, mode: undefined };
  const area = {
    offset: record.systemUse.offset + naming.skip,
    length: record.systemUse.length - naming.skip,
  };
  const { name, mode } = readRockRidge(bytes, area);
  return { name: name ?? plain, mode };
}

function stripVersion(identifier: string): string {
  return identifier.replace(/;\d+$/, '');
}

function concatExtents(pieces: readonly Uint8Array[]): Uint8Array {
  const [first] = pieces;
  if (pieces.length === 1 && first !== undefined) return first;
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
