// SPDX-License-Identifier: Apache-2.0
// The fields of a message type, in the form that the scanner of raw bytes needs.
import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { WireType } from '@bufbuild/protobuf/wire';

export interface FieldLayout {
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

/** Undefined for an enum. */
function scalarLayout(scalar: ScalarType | undefined): FieldLayout {
  switch (scalar) {
    case ScalarType.BYTES:
      return delimitedLayout({ allocatesObject: true });
    case ScalarType.STRING:
      return delimitedLayout({});
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return plainLayout(WireType.Bit64);
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return plainLayout(WireType.Bit32);
    default:
      return plainLayout(WireType.Varint);
  }
}

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
