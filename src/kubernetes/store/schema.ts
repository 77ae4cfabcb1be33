// SPDX-License-Identifier: Apache-2.0
// OpenAPI schemas of the objects, and the conversion between records and objects that follows from them: a time is a
// number of milliseconds in a record and a date in an object.

/** A structural schema of a CustomResourceDefinition. */
export interface Schema {
  readonly type: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  readonly description?: string;
  readonly format?: 'date-time' | 'int64';
  readonly enum?: readonly string[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly required?: readonly string[];
  readonly 'x-kubernetes-preserve-unknown-fields'?: true;
  readonly 'x-kubernetes-validations'?: readonly {
    readonly rule: string;
    readonly message: string;
  }[];
}

interface OptionalSchema {
  readonly optional: Schema;
}

/** A schema for every field of the type, so that no field is added to the model without one. */
export type FieldSchemas<T> = {
  readonly [K in keyof T]-?: object extends Pick<T, K> ? OptionalSchema : Schema;
};

export const text = (description: string): Schema => ({ type: 'string', description });
export const flag = (description: string): Schema => ({ type: 'boolean', description });
export const number = (description: string): Schema => ({ type: 'number', description });
export const integer = (description: string): Schema => ({
  type: 'integer',
  format: 'int64',
  description,
});
/** Milliseconds since 1970 in the record. */
export const time = (description: string): Schema => ({
  type: 'string',
  format: 'date-time',
  description,
});
export const choice = (description: string, values: readonly string[]): Schema => ({
  type: 'string',
  description,
  enum: values,
});
export const list = (description: string, items: Schema): Schema => ({
  type: 'array',
  description,
  items,
});
export const map = (description: string, additionalProperties: Schema): Schema => ({
  type: 'object',
  description,
  additionalProperties,
});
export const optional = (schema: Schema): OptionalSchema => ({ optional: schema });

/** Fields that the schema does not name are kept, so that an older definition loses nothing of a newer program. */
export function object<T extends object>(description: string, fields: FieldSchemas<T>): Schema {
  const entries = Object.entries<Schema | OptionalSchema>(fields);
  const required = entries.filter(([, field]) => 'type' in field).map(([name]) => name);
  return {
    type: 'object',
    description,
    properties: Object.fromEntries(
      entries.map(([name, field]) => [name, 'type' in field ? field : field.optional]),
    ),
    ...(required.length > 0 && { required }),
    'x-kubernetes-preserve-unknown-fields': true,
  };
}

export type JsonRecord = Readonly<Record<string, unknown>>;

/** From the form of a record to that of an object. */
export function encodeValue(schema: Schema | undefined, value: unknown): unknown {
  return convert(schema, value, formatTime);
}

/** From the form of an object to that of a record. A time that cannot be read stays a text, which no validator accepts. */
export function decodeValue(schema: Schema | undefined, value: unknown): unknown {
  return convert(schema, value, parseTime);
}

type ConvertTime = (value: unknown) => unknown;

function convert(schema: Schema | undefined, value: unknown, convertTime: ConvertTime): unknown {
  if (schema?.format === 'date-time') return convertTime(value);
  if (Array.isArray(value)) return value.map((item) => convert(schema?.items, item, convertTime));
  if (!isJsonRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => inner !== undefined && inner !== null)
      .map(([name, inner]) => [name, convert(partOf(schema, name), inner, convertTime)]),
  );
}

function partOf(schema: Schema | undefined, name: string): Schema | undefined {
  const { properties = {}, additionalProperties } = schema ?? {};
  return Object.hasOwn(properties, name) ? properties[name] : additionalProperties;
}

/** The last millisecond that the API server accepts as a date. */
const LAST_TIME = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Date has whole milliseconds; a fraction follows as further digits. */
function formatTime(value: unknown): unknown {
  if (typeof value !== 'number' || value < 0 || value > LAST_TIME) return value;
  const whole = Math.floor(value);
  const digits = (value - whole).toFixed(20).slice(2).replace(/0+$/, '');
  return new Date(whole).toISOString().replace('Z', `${digits}Z`);
}

const TIME = /^(.*T\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/i;

function parseTime(value: unknown): unknown {
  const [, seconds, fraction = '', zone] =
    typeof value === 'string' ? (TIME.exec(value) ?? []) : [];
  const at = Date.parse(`${seconds}${zone}`);
  if (Number.isNaN(at)) return value;
  const ms = `${fraction.slice(0, 3).padEnd(3, '0')}.${fraction.slice(3)}`;
  return at + Number(ms);
}

export function isJsonRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Regardless of the order of fields, which the API server does not keep. Undefined fields count as absent. */
export function isEqualJson(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, at) => isEqualJson(item, other[at]));
  }
  if (!isJsonRecord(one) || !isJsonRecord(other)) return one === other;
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].every((name) => isEqualJson(one[name], other[name]));
}
