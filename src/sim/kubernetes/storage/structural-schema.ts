// SPDX-License-Identifier: Apache-2.0
// The structural schema of a custom resource: which fields an object keeps and which defaults it gets.
import {
  isObject,
  type Json,
  type JsonObject,
  listField,
  objectField,
  textField,
  textList,
  withoutTypeAndMetadata,
} from './objects.ts';

export interface StructuralSchema {
  /** As in the definition; validation reads its limits. */
  readonly source: JsonObject;
  /** Empty: any. */
  readonly types: readonly string[];
  readonly isNullable: boolean;
  /** Unknown fields are kept. */
  readonly isOpen: boolean;
  readonly properties: ReadonlyMap<string, StructuralSchema>;
  /** Schema of the values of a map. */
  readonly values?: StructuralSchema;
  readonly items?: StructuralSchema;
  readonly required: readonly string[];
  readonly default?: Json;
  readonly pattern?: RegExp;
  /** Messages of the rules `self == oldSelf`. */
  readonly immutable: readonly string[];
}

const EQUALS_OLD = /^\s*(?:self\s*==\s*oldSelf|oldSelf\s*==\s*self)\s*$/;

export function compileSchema(source: JsonObject): StructuralSchema {
  const { items, additionalProperties: values } = source;
  const type = textField(source, 'type');
  const pattern = textField(source, 'pattern');
  const isIntOrString = source['x-kubernetes-int-or-string'] === true;
  return {
    source,
    types: isIntOrString ? ['integer', 'string'] : type === '' ? [] : [type],
    isNullable: source['nullable'] === true,
    isOpen: source['x-kubernetes-preserve-unknown-fields'] === true || values === true,
    properties: new Map(
      Object.entries(objectField(source, 'properties')).flatMap(([name, inner]) =>
        isObject(inner) ? [[name, compileSchema(inner)] as const] : [],
      ),
    ),
    ...(isObject(values) && { values: compileSchema(values) }),
    ...(isObject(items) && { items: compileSchema(items) }),
    required: textList(source, 'required'),
    ...(source['default'] !== undefined && { default: source['default'] }),
    ...(pattern !== '' && { pattern: new RegExp(pattern, 'u') }),
    immutable: listField(source, 'x-kubernetes-validations')
      .filter((rule) => EQUALS_OLD.test(textField(rule, 'rule')))
      .map((rule) => textField(rule, 'message') || `failed rule: ${textField(rule, 'rule')}`),
  };
}

/** True when the schema or a part of it has rules, known or not. */
export function hasRules(schema: StructuralSchema): boolean {
  const parts = [...schema.properties.values(), schema.values, schema.items];
  return (
    schema.source['x-kubernetes-validations'] !== undefined ||
    parts.some((part) => part !== undefined && hasRules(part))
  );
}

/** The schema of a field; undefined for a field that is not declared. */
export function partOf(schema: StructuralSchema, key: string): StructuralSchema | undefined {
  return schema.properties.get(key) ?? schema.values;
}

/** The value without unknown fields and nulls, and with defaults. */
export function conformValue(schema: StructuralSchema, value: Json): Json {
  const { items } = schema;
  if (Array.isArray(value)) {
    return items === undefined ? value : value.map((item: Json) => conformValue(items, item));
  }
  return isObject(value) ? conformFields(schema, value) : value;
}

function conformFields(schema: StructuralSchema, value: JsonObject): JsonObject {
  const kept: Record<string, Json> = {};
  for (const [key, inner] of Object.entries(value)) {
    const part = partOf(schema, key);
    if (inner === undefined) continue;
    if (part === undefined) {
      if (schema.isOpen) kept[key] = inner;
    } else if (inner !== null || part.isNullable) {
      kept[key] = conformValue(part, inner);
    }
  }
  for (const [key, part] of schema.properties) {
    if (part.default !== undefined && kept[key] === undefined) {
      kept[key] = conformValue(part, part.default);
    }
  }
  return kept;
}

/** Conforms everything but apiVersion, kind and metadata. */
export function conformObject(schema: StructuralSchema, object: JsonObject): JsonObject {
  const { apiVersion, kind, metadata, ...rest } = object;
  const own = conformValue(schema, rest);
  return {
    ...(apiVersion !== undefined && { apiVersion }),
    ...(kind !== undefined && { kind }),
    ...(metadata !== undefined && { metadata }),
    ...(isObject(own) && own),
  };
}

/** Paths of the fields that the schema does not declare: `spec.items[0].name`. */
export function findUnknownFields(schema: StructuralSchema, object: JsonObject): readonly string[] {
  return unknownFields(schema, withoutTypeAndMetadata(object), '').toSorted();
}

function unknownFields(schema: StructuralSchema, value: Json, at: string): readonly string[] {
  const { items } = schema;
  if (Array.isArray(value)) {
    if (items === undefined) return [];
    return value.flatMap((item: Json, index) => unknownFields(items, item, `${at}[${index}]`));
  }
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const part = partOf(schema, key);
    const path = at === '' ? key : `${at}.${key}`;
    if (part !== undefined) return inner === undefined ? [] : unknownFields(part, inner, path);
    return schema.isOpen ? [] : [path];
  });
}
