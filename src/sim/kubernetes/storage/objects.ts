// SPDX-License-Identifier: Apache-2.0

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

export interface SimObjectMeta extends JsonObject {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly creationTimestamp: string;
  readonly deletionTimestamp?: string;
}

export interface SimObject extends JsonObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: SimObjectMeta;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function objectField(parent: JsonObject | undefined, key: string): JsonObject {
  const value = parent?.[key];
  return isObject(value) ? value : {};
}

export function textField(parent: JsonObject, key: string): string {
  const value = parent[key];
  return typeof value === 'string' ? value : '';
}

export function numberField(parent: JsonObject, key: string, otherwise = 0): number {
  const value = parent[key];
  return typeof value === 'number' ? value : otherwise;
}

/** The objects of a list; other items are left out. */
export function listField(parent: JsonObject | undefined, key: string): readonly JsonObject[] {
  const value = parent?.[key];
  return Array.isArray(value) ? value.filter(isObject) : [];
}

export function textList(parent: JsonObject | undefined, key: string): readonly string[] {
  const value = parent?.[key];
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

/** The part of a custom object that its schema describes. */
export function withoutTypeAndMetadata(object: JsonObject): JsonObject {
  const { apiVersion: _apiVersion, kind: _kind, metadata: _metadata, ...rest } = object;
  return rest;
}

export function readPath(object: JsonObject, path: readonly string[]): Json | undefined {
  let value: Json | undefined = object;
  for (const key of path) value = isObject(value) ? value[key] : undefined;
  return value;
}

export function labelsOf({ metadata }: SimObject): Readonly<Record<string, string>> {
  return textMap(metadata, 'labels');
}

export function textMap(parent: JsonObject, key: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(objectField(parent, key)).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  );
}

export function specOf(object: SimObject): JsonObject {
  return objectField(object, 'spec');
}

export function statusOf(object: SimObject): JsonObject {
  return objectField(object, 'status');
}

export function conditionOf(object: SimObject, type: string): JsonObject | undefined {
  return listField(statusOf(object), 'conditions').find((one) => one['type'] === type);
}

export function isTerminating({ metadata }: SimObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** RFC 3339 with whole seconds, as Kubernetes writes times. */
export function formatTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** Equal up to the order of keys. */
export function isEqualJson(one: Json | undefined, other: Json | undefined): boolean {
  if (one === other) return true;
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, at) => isEqualJson(item, other[at]));
  }
  if (!isObject(one) || !isObject(other)) return false;
  const keys = Object.keys(one).filter((key) => one[key] !== undefined);
  const otherKeys = Object.keys(other).filter((key) => other[key] !== undefined);
  return keys.length === otherKeys.length && keys.every((key) => isEqualJson(one[key], other[key]));
}
