// SPDX-License-Identifier: Apache-2.0
// Scans the raw bytes of a message before it is decoded. Two bytes on the wire can cost hundreds of bytes in memory, so a
// message with far more fields than the autoscaler sends is refused here, in one pass without allocations. The scan is
// stricter than a decoder must be: it refuses groups, wrong wire types and overlong lengths, so that scanner and decoder
// read the same fields.

import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { WireType } from '@bufbuild/protobuf/wire';

export interface ScanLimits {
  /** Fields on all levels together. */
  readonly fields: number;
  /** Fields that allocate an object each: submessages and byte strings. */
  readonly objects: number;
  /** Map entries of one submessage. */
  readonly mapEntries: number;
}

/**
 * The most that the autoscaler could put into 4 MiB: ten thousand nodes to delete with a dozen labels and annotations
 * each are 400,000 fields; pods for the expander have at least two hundred bytes each, so there are at most 20,000.
 */
const SCAN_LIMITS: ScanLimits = { fields: 400_000, objects: 25_000, mapEntries: 5_000 };

export interface ScanRefusal {
  readonly kind: 'malformed' | 'too-many-fields';
  readonly problem: string;
}

const MAX_DEPTH = 32;
const MAX_VARINT_BYTES = 10;
const MAX_UINT32_BYTES = 5;

/** Undefined when the message may be decoded. */
export function scanMessage(
  bytes: Uint8Array,
  layout: MessageLayout,
  limits: ScanLimits = SCAN_LIMITS,
): ScanRefusal | undefined {
  const scanner = new Scanner(bytes, layout, limits);
  try {
    scanner.message(layout, bytes.length);
    return undefined;
  } catch (error) {
    if (error instanceof ScanStopped) return error.refusal;
    throw error;
  }
}

/** Ends the scan from any depth; not thrown beyond this file. */
class ScanStopped extends Error {
  readonly refusal: ScanRefusal;

  constructor(kind: ScanRefusal['kind'], problem: string) {
    super(problem);
    this.refusal = { kind, problem };
  }
}

/** Keeps the state of the current message in its own properties, so that it allocates nothing. */
class Scanner {
  readonly #bytes: Uint8Array;
  readonly #limits: ScanLimits;
  #layout: MessageLayout;
  #end = 0;
  #depth = 0;
  #position = 0;
  #fieldCount = 0;
  #objectCount = 0;

  constructor(bytes: Uint8Array, layout: MessageLayout, limits: ScanLimits) {
    this.#bytes = bytes;
    this.#layout = layout;
    this.#limits = limits;
  }

  message(layout: MessageLayout, end: number): void {
    const [outerLayout, outerEnd] = [this.#layout, this.#end];
    this.#layout = layout;
    this.#end = end;
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw this.#malformed(`is nested deeper than ${MAX_DEPTH} levels`);
    this.#fields();
    this.#depth -= 1;
    this.#layout = outerLayout;
    this.#end = outerEnd;
  }

  #fields(): void {
    const { fields, refusesUnknownFields, name } = this.#layout;
    let mapEntries = 0;
    while (this.#position < this.#end) {
      this.#countField();
      const tag = this.#uint32();
      const number = tag >>> 3;
      const field = fields.get(number);
      if (field !== undefined) this.#knownField(field, tag);
      else if (refusesUnknownFields || number === 0)
        throw this.#malformed(`has an invalid field ${number}`);
      else this.#skip(tag & 7);
      if (field?.isMapEntry !== true) continue;
      mapEntries += 1;
      if (mapEntries > this.#limits.mapEntries) {
        throw tooMany(`more than ${this.#limits.mapEntries} map entries in one ${name}`);
      }
    }
  }

  #knownField(field: FieldLayout, tag: number): void {
    const wireType: WireType = tag & 7;
    if (field.allocatesObject) this.#countObject();
    if (field.packed !== undefined && wireType === WireType.LengthDelimited) {
      return this.#packed(field.packed, this.#delimited());
    }
    if (wireType !== field.wireType) {
      throw this.#malformed(`has field ${tag >>> 3} with wire type ${wireType}`);
    }
    if (field.message === undefined) this.#skip(wireType);
    else this.message(field.message, this.#delimited());
  }

  #packed(wireType: WireType, end: number): void {
    while (this.#position < end) {
      this.#countField();
      this.#skip(wireType);
    }
    if (this.#position > end) throw this.#malformed('has a truncated field');
  }

  #skip(wireType: WireType): void {
    switch (wireType) {
      case WireType.Varint:
        return this.#varint();
      case WireType.Bit64:
        return this.#skipBytes(8);
      case WireType.Bit32:
        return this.#skipBytes(4);
      case WireType.LengthDelimited:
        this.#position = this.#delimited();
        return;
      case WireType.StartGroup:
      case WireType.EndGroup:
        break;
    }
    // Groups, and the two values of the wire that are no type.
    throw this.#malformed(`has unsupported wire type ${wireType}`);
  }

  /** Returns the end of the field; the position is at its start. */
  #delimited(): number {
    const length = this.#uint32();
    if (length > this.#end - this.#position) throw this.#malformed('has a truncated field');
    return this.#position + length;
  }

  #skipBytes(length: number): void {
    if (length > this.#end - this.#position) throw this.#malformed('has a truncated field');
    this.#position += length;
  }

  #varint(): void {
    const last = Math.min(this.#end, this.#position + MAX_VARINT_BYTES);
    while (this.#position < last) {
      this.#position += 1;
      if ((this.#bytes[this.#position - 1] ?? 0) < 0x80) return;
    }
    throw this.#malformed('has a truncated varint');
  }

  #uint32(): number {
    let value = 0;
    const last = Math.min(this.#end, this.#position + MAX_UINT32_BYTES);
    for (let shift = 0; this.#position < last; shift += 7) {
      const byte = this.#bytes[this.#position] ?? 0;
      this.#position += 1;
      if (shift === 28 && byte > 0x0f) break;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw this.#malformed('has a truncated or overlong tag or length');
  }

  #countField(): void {
    this.#fieldCount += 1;
    if (this.#fieldCount > this.#limits.fields)
      throw tooMany(`more than ${this.#limits.fields} fields`);
  }

  #countObject(): void {
    this.#objectCount += 1;
    if (this.#objectCount > this.#limits.objects) {
      throw tooMany(`more than ${this.#limits.objects} submessages and byte strings`);
    }
  }

  #malformed(problem: string): ScanStopped {
    return new ScanStopped('malformed', `not a valid message: ${this.#layout.name} ${problem}`);
  }
}

function tooMany(problem: string): ScanStopped {
  return new ScanStopped('too-many-fields', `the message has ${problem}`);
}

// The fields of a message type, in the form that the scanner of raw bytes needs.

interface FieldLayout {
  /** The only accepted wire type: the decoder reads a known field by its declared type and ignores the tag's. */
  readonly wireType: WireType;
  /** The layout of a submessage or map entry. */
  readonly message: MessageLayout | undefined;
  readonly isMapEntry: boolean;
  /** Wire type of each element when the scalars may also be packed under one tag. */
  readonly packed: WireType | undefined;
  /** Decoding allocates an object. */
  readonly allocatesObject: boolean;
}

export interface MessageLayout {
  readonly name: string;
  readonly fields: ReadonlyMap<number, FieldLayout>;
  /** True for a map entry, which has only a key and a value. */
  readonly refusesUnknownFields: boolean;
}

/** Builds each type once: types may be recursive. */
export function buildLayout(
  message: DescMessage,
  known: Map<string, MessageLayout> = new Map(),
): MessageLayout {
  const existing = known.get(message.typeName);
  if (existing !== undefined) return existing;
  const fields = new Map<number, FieldLayout>();
  const layout: MessageLayout = { name: message.typeName, fields, refusesUnknownFields: false };
  known.set(message.typeName, layout);
  for (const field of message.fields) fields.set(field.number, fieldLayout(field, known));
  return layout;
}

function fieldLayout(field: DescField, known: Map<string, MessageLayout>): FieldLayout {
  if (field.fieldKind === 'map')
    return delimitedLayout({ message: entryLayout(field, known), isMapEntry: true });
  if (field.message !== undefined)
    return delimitedLayout({ message: buildLayout(field.message, known), allocatesObject: true });
  const plain = scalarLayout(field.scalar);
  const isPackable = field.fieldKind === 'list' && plain.wireType !== WireType.LengthDelimited;
  return isPackable ? { ...plain, packed: plain.wireType } : plain;
}

function entryLayout(
  field: DescField & { readonly fieldKind: 'map' },
  known: Map<string, MessageLayout>,
): MessageLayout {
  const value =
    field.message === undefined
      ? scalarLayout(field.scalar)
      : delimitedLayout({ message: buildLayout(field.message, known), allocatesObject: true });
  const fields = new Map([
    [1, scalarLayout(field.mapKey)],
    [2, value],
  ]);
  return { name: `map entry of ${field.name}`, fields, refusesUnknownFields: true };
}

/** `undefined` is the scalar of an enum. All others are varints. */
function scalarLayout(scalar: ScalarType | undefined): FieldLayout {
  if (scalar === ScalarType.BYTES) return delimitedLayout({ allocatesObject: true });
  if (scalar === ScalarType.STRING) return delimitedLayout({});
  if (scalar !== undefined && BIT64_SCALARS.has(scalar)) return plainLayout(WireType.Bit64);
  if (scalar !== undefined && BIT32_SCALARS.has(scalar)) return plainLayout(WireType.Bit32);
  return plainLayout(WireType.Varint);
}

const BIT64_SCALARS: ReadonlySet<ScalarType> = new Set([
  ScalarType.DOUBLE,
  ScalarType.FIXED64,
  ScalarType.SFIXED64,
]);
const BIT32_SCALARS: ReadonlySet<ScalarType> = new Set([
  ScalarType.FLOAT,
  ScalarType.FIXED32,
  ScalarType.SFIXED32,
]);

function delimitedLayout(parts: Partial<FieldLayout>): FieldLayout {
  return { ...plainLayout(WireType.LengthDelimited), ...parts };
}

function plainLayout(wireType: WireType): FieldLayout {
  return {
    wireType,
    message: undefined,
    isMapEntry: false,
    packed: undefined,
    allocatesObject: false,
  };
}
