// SPDX-License-Identifier: Apache-2.0
// What a message may consist of, in the form in which raw bytes are compared with it.
import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { WireType } from '@bufbuild/protobuf/wire';

export interface FieldPlan {
  /** The only one that is taken: the decoder reads a known field by its type, whatever its tag says. */
  readonly wireType: WireType;
  /** Of a submessage or a map's entry. */
  readonly message: MessagePlan | undefined;
  readonly isEntry: boolean;
  /** Scalars that may also come together under one tag; then this is how each of them is written. */
  readonly packed: WireType | undefined;
  /** Costs an object when it is decoded. */
  readonly isObject: boolean;
}

export interface MessagePlan {
  readonly name: string;
  readonly fields: ReadonlyMap<number, FieldPlan>;
  /** In a map's entry there is nothing beside key and value. */
  readonly isClosed: boolean;
}

/** Each type once: types may contain themselves. */
export function planOf(
  message: DescMessage,
  known: Map<string, MessagePlan> = new Map(),
): MessagePlan {
  const before = known.get(message.typeName);
  if (before !== undefined) return before;
  const fields = new Map<number, FieldPlan>();
  const plan: MessagePlan = { name: message.typeName, fields, isClosed: false };
  known.set(message.typeName, plan);
  for (const field of message.fields) fields.set(field.number, fieldPlan(field, known));
  return plan;
}

function fieldPlan(field: DescField, known: Map<string, MessagePlan>): FieldPlan {
  if (field.fieldKind === 'map')
    return delimited({ message: entryPlan(field, known), isEntry: true });
  if (field.message !== undefined)
    return delimited({ message: planOf(field.message, known), isObject: true });
  const plain = scalarPlan(field.scalar);
  const isPackable = field.fieldKind === 'list' && plain.wireType !== WireType.LengthDelimited;
  return isPackable ? { ...plain, packed: plain.wireType } : plain;
}

function entryPlan(
  field: DescField & { readonly fieldKind: 'map' },
  known: Map<string, MessagePlan>,
): MessagePlan {
  const value =
    field.message === undefined
      ? scalarPlan(field.scalar)
      : delimited({ message: planOf(field.message, known), isObject: true });
  const fields = new Map([
    [1, scalarPlan(field.mapKey)],
    [2, value],
  ]);
  return { name: `an entry of ${field.name}`, fields, isClosed: true };
}

/** Undefined: an enum. */
function scalarPlan(scalar: ScalarType | undefined): FieldPlan {
  switch (scalar) {
    case ScalarType.BYTES:
      return delimited({ isObject: true });
    case ScalarType.STRING:
      return delimited({});
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return plainOf(WireType.Bit64);
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return plainOf(WireType.Bit32);
    default:
      return plainOf(WireType.Varint);
  }
}

function delimited(parts: Partial<FieldPlan>): FieldPlan {
  return { ...plainOf(WireType.LengthDelimited), ...parts };
}

function plainOf(wireType: WireType): FieldPlan {
  return { wireType, message: undefined, isEntry: false, packed: undefined, isObject: false };
}
