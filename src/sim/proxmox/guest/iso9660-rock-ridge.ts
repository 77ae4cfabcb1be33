// SPDX-License-Identifier: Apache-2.0
// Reads Rock Ridge names and modes from the SUSP system use area after each directory record.
import { type IsoBytes, IsoError, SECTOR_BYTES } from './iso9660-bytes.ts';

export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

export interface RockRidgeFields {
  readonly name: string | undefined;
  readonly mode: number | undefined;
}

interface SystemUseEntry extends ByteRange {
  readonly signature: string;
}

const ENTRY_HEADER_BYTES = 4;
/** A longer chain of continuations is treated as a loop. */
const MAX_CONTINUATIONS = 32;
const NAME_CONTINUES = 0x01;
const NAME_IS_SELF_OR_PARENT = 0x06;

/** Number of bytes to skip in each system use area; undefined when the root has no SUSP indicator (SP). */
export function readSuspSkip(bytes: IsoBytes, area: ByteRange): number | undefined {
  if (area.length < 7 || bytes.ascii(area.offset, 2) !== 'SP') return undefined;
  if (bytes.byte(area.offset + 4) !== 0xbe || bytes.byte(area.offset + 5) !== 0xef) {
    throw new IsoError('malformed: SUSP indicator without its check bytes');
  }
  return bytes.byte(area.offset + 6);
}

export function readRockRidge(bytes: IsoBytes, area: ByteRange): RockRidgeFields {
  let name: string | undefined;
  let mode: number | undefined;
  let nameEnded = false;
  for (const entry of readEntries(bytes, area)) {
    if (entry.signature === 'PX') mode = bytes.readBoth32(entry.offset + ENTRY_HEADER_BYTES);
    if (entry.signature !== 'NM' || nameEnded) continue;
    const flags = readNameFlags(bytes, entry);
    nameEnded = (flags & NAME_CONTINUES) === 0;
    if ((flags & NAME_IS_SELF_OR_PARENT) === 0) name = (name ?? '') + readNamePart(bytes, entry);
  }
  return { name, mode };
}

function readNameFlags(bytes: IsoBytes, entry: SystemUseEntry): number {
  if (entry.length < 5) throw new IsoError('malformed: Rock Ridge name without flags');
  return bytes.byte(entry.offset + ENTRY_HEADER_BYTES);
}

function readNamePart(bytes: IsoBytes, entry: SystemUseEntry): string {
  return new TextDecoder().decode(bytes.slice(entry.offset + 5, entry.length - 5));
}

function* readEntries(bytes: IsoBytes, first: ByteRange): Generator<SystemUseEntry> {
  let area: ByteRange | undefined = first;
  for (let hop = 0; area !== undefined; hop += 1) {
    if (hop > MAX_CONTINUATIONS) throw new IsoError('malformed: SUSP continuations form a loop');
    let next: ByteRange | undefined;
    for (const entry of readEntriesInRange(bytes, area)) {
      if (entry.signature === 'CE') next = readContinuation(bytes, entry);
      else yield entry;
    }
    area = next;
  }
}

function* readEntriesInRange(bytes: IsoBytes, area: ByteRange): Generator<SystemUseEntry> {
  const end = area.offset + area.length;
  let offset = area.offset;
  while (offset + ENTRY_HEADER_BYTES <= end) {
    const signature = bytes.ascii(offset, 2);
    const length = bytes.byte(offset + 2);
    // Padding after the last entry, or the terminator entry.
    if (length === 0 || signature === 'ST') return;
    if (length < ENTRY_HEADER_BYTES || offset + length > end) {
      throw new IsoError(`malformed: system use entry of ${length} bytes at ${offset}`);
    }
    yield { signature, offset, length };
    offset += length;
  }
}

function readContinuation(bytes: IsoBytes, entry: SystemUseEntry): ByteRange {
  if (entry.length < 28) throw new IsoError('malformed: SUSP continuation too short');
  const block = bytes.readBoth32(entry.offset + 4);
  const within = bytes.readBoth32(entry.offset + 12);
  return { offset: block * SECTOR_BYTES + within, length: bytes.readBoth32(entry.offset + 20) };
}
