// SPDX-License-Identifier: Apache-2.0
// Rock Ridge names and modes, out of the system use area that SUSP lays after each directory record.
import { type IsoBytes, IsoError, SECTOR_BYTES } from './iso9660-bytes.ts';

export interface Area {
  readonly offset: number;
  readonly length: number;
}

export interface RockRidge {
  readonly name: string | undefined;
  readonly mode: number | undefined;
}

interface Entry extends Area {
  readonly signature: string;
}

const ENTRY_HEADER = 4;
/** Longer chains than this are a loop. */
const MAX_CONTINUATIONS = 32;
const NAME_CONTINUES = 0x01;
const NAME_IS_SELF_OR_PARENT = 0x06;

/** The bytes to skip in each system use area, when the root says (SP) that SUSP is in use. */
export function suspSkip(bytes: IsoBytes, area: Area): number | undefined {
  if (area.length < 7 || bytes.ascii(area.offset, 2) !== 'SP') return undefined;
  if (bytes.byte(area.offset + 4) !== 0xbe || bytes.byte(area.offset + 5) !== 0xef) {
    throw new IsoError('malformed: SUSP indicator without its check bytes');
  }
  return bytes.byte(area.offset + 6);
}

export function readRockRidge(bytes: IsoBytes, area: Area): RockRidge {
  let name: string | undefined;
  let mode: number | undefined;
  let nameEnded = false;
  for (const entry of entries(bytes, area)) {
    if (entry.signature === 'PX') mode = bytes.both32(entry.offset + ENTRY_HEADER);
    if (entry.signature !== 'NM' || nameEnded) continue;
    const flags = nameFlags(bytes, entry);
    nameEnded = (flags & NAME_CONTINUES) === 0;
    if ((flags & NAME_IS_SELF_OR_PARENT) === 0) name = (name ?? '') + namePart(bytes, entry);
  }
  return { name, mode };
}

function nameFlags(bytes: IsoBytes, entry: Entry): number {
  if (entry.length < 5) throw new IsoError('malformed: Rock Ridge name without flags');
  return bytes.byte(entry.offset + ENTRY_HEADER);
}

function namePart(bytes: IsoBytes, entry: Entry): string {
  return new TextDecoder().decode(bytes.slice(entry.offset + 5, entry.length - 5));
}

function* entries(bytes: IsoBytes, first: Area): Generator<Entry> {
  let area: Area | undefined = first;
  for (let hop = 0; area !== undefined; hop += 1) {
    if (hop > MAX_CONTINUATIONS)
      throw new IsoError('malformed: SUSP continuations run in a circle');
    let next: Area | undefined;
    for (const entry of entriesOf(bytes, area)) {
      if (entry.signature === 'CE') next = continuation(bytes, entry);
      else yield entry;
    }
    area = next;
  }
}

function* entriesOf(bytes: IsoBytes, area: Area): Generator<Entry> {
  const end = area.offset + area.length;
  let offset = area.offset;
  while (offset + ENTRY_HEADER <= end) {
    const signature = bytes.ascii(offset, 2);
    const length = bytes.byte(offset + 2);
    // Padding after the last entry, or the terminator.
    if (length === 0 || signature === 'ST') return;
    if (length < ENTRY_HEADER || offset + length > end) {
      throw new IsoError(`malformed: system use entry of ${length} bytes at ${offset}`);
    }
    yield { signature, offset, length };
    offset += length;
  }
}

function continuation(bytes: IsoBytes, entry: Entry): Area {
  if (entry.length < 28) throw new IsoError('malformed: SUSP continuation too short');
  const block = bytes.both32(entry.offset + 4);
  const within = bytes.both32(entry.offset + 12);
  return { offset: block * SECTOR_BYTES + within, length: bytes.both32(entry.offset + 20) };
}
