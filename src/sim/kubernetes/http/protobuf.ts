// SPDX-License-Identifier: Apache-2.0
// Bodies in Kubernetes' protobuf encoding, which `kubectl create KIND` sends: only the kinds and fields that it can set. A
// field that is not in the tables must be empty.
import { ApiError } from '../storage/api-error.ts';
import { isObject, type Json, type JsonObject, textField } from '../storage/objects.ts';
import { type FieldType, KINDS, METADATA, type Message, type Scalar } from './protobuf-kinds.ts';

const MAGIC = [0x6b, 0x38, 0x73, 0x00];

/** Throws 415 for what the tables do not contain, 400 for what is not protobuf. */
export function parseProtobuf(bytes: Uint8Array): JsonObject {
  if (!MAGIC.every((byte, at) => bytes[at] === byte)) throw malformed();
  const envelope = new Map(readFields(bytes.subarray(MAGIC.length)));
  const type = decode(lengthField(envelope.get(1)), {
    1: ['apiVersion', 'text'],
    2: ['kind', 'text'],
  });
  const kind = `${textField(type, 'apiVersion')} ${textField(type, 'kind')}`;
  const table = KINDS[kind];
  if (table === undefined) throw unsupported(kind);
  const object = decode(lengthField(envelope.get(2)), { ...table, 1: ['metadata', METADATA] });
  return { ...type, ...object };
}

type Value = number | Uint8Array;

function decode(bytes: Uint8Array, message: Message): JsonObject {
  const object: Record<string, Json> = {};
  for (const [number, value] of readFields(bytes)) {
    const field = message[number];
    if (field === undefined) {
      if (!isEmpty(value)) throw unsupported(`field ${number}`);
      continue;
    }
    const [name, type] = field;
    const decoded = decodeField(value, type, object[name]);
    if (decoded !== undefined) object[name] = decoded;
  }
  return object;
}

/** An unset status is a message of zeros. */
function isEmpty(value: Value): boolean {
  return typeof value === 'number' ? value === 0 : readableFields(value).every(isEmpty);
}

function readableFields(bytes: Uint8Array): readonly Value[] {
  return bytes.length === 0 ? [] : readFields(bytes).map(([, value]) => value);
}

/** `before`: the earlier values of a repeated field. Undefined: not set. */
function decodeField(value: Value, type: FieldType, before: Json | undefined): Json | undefined {
  if (typeof type === 'object') {
    const repeated = Array.isArray(type);
    const decoded = decode(lengthField(value), repeated ? type[0] : type);
    return repeated ? [...asList(before), decoded] : decoded;
  }
  return SCALARS[type](value, before);
}

const SCALARS: Readonly<
  Record<Scalar, (value: Value, before: Json | undefined) => Json | undefined>
> = {
  text: (value) => textOf(value) || undefined,
  number: (value) => numberOf(value) || undefined,
  'set-number': numberOf,
  flag: (value) => numberOf(value) === 1 || undefined,
  texts: (value, before) => [...asList(before), textOf(value)],
  'text-map': (value, before) => ({ ...asObject(before), ...mapEntry(value, textOf) }),
  'bytes-map': (value, before) => ({ ...asObject(before), ...mapEntry(value, base64Of) }),
  'int-or-string': intOrString,
};

const NO_BYTES = new Uint8Array();

function mapEntry(value: Value, valueOf: (value: Value) => string): JsonObject {
  const entry = new Map(readFields(lengthField(value)));
  return { [textOf(entry.get(1) ?? NO_BYTES)]: valueOf(entry.get(2) ?? NO_BYTES) };
}

function intOrString(value: Value): Json {
  const fields = new Map(readFields(lengthField(value)));
  const isText = numberOf(fields.get(1) ?? 0) === 1;
  return isText ? textOf(fields.get(3) ?? NO_BYTES) : numberOf(fields.get(2) ?? 0);
}

function asList(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

function asObject(value: Json | undefined): JsonObject {
  return value !== undefined && isObject(value) ? value : {};
}

function textOf(value: Value): string {
  return new TextDecoder().decode(lengthField(value));
}

function base64Of(value: Value): string {
  return Buffer.from(lengthField(value)).toString('base64');
}

function numberOf(value: Value): number {
  if (typeof value !== 'number') throw malformed();
  return value;
}

function lengthField(value: Value | undefined): Uint8Array {
  if (!(value instanceof Uint8Array)) throw malformed();
  return value;
}

const VARINT = 0;
const LENGTH = 2;

function readFields(bytes: Uint8Array): readonly (readonly [number, Value])[] {
  const fields: (readonly [number, Value])[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at];
      if (byte === undefined) throw malformed();
      at += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return Number(BigInt.asIntN(64, value));
    }
  };
  while (at < bytes.length) {
    const key = varint();
    const wire = key & 7;
    if (wire !== VARINT && wire !== LENGTH) throw malformed();
    const value = varint();
    if (wire === VARINT) fields.push([key >>> 3, value]);
    else {
      if (value < 0 || at + value > bytes.length) throw malformed();
      fields.push([key >>> 3, bytes.subarray(at, at + value)]);
      at += value;
    }
  }
  return fields;
}

function malformed(): ApiError {
  return new ApiError(400, 'BadRequest', 'the body of the request is not valid protobuf');
}

function unsupported(what: string): ApiError {
  const text = `the simulator does not read ${what} in application/vnd.kubernetes.protobuf; send JSON`;
  return new ApiError(415, 'UnsupportedMediaType', text);
}
