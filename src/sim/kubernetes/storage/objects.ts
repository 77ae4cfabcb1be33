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
