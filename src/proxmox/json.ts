// SPDX-License-Identifier: Apache-2.0
// Reads untyped JSON of Proxmox, which sends numbers as strings, booleans as 0 and 1, and omits unknown values.

export type JsonObject = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function asObject(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

export function asObjects(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter((item: unknown) => isObject(item)) : [];
}

/** Accepts numbers: Proxmox may send a name of digits as a number. */
export function asText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return typeof value === 'number' ? String(value) : undefined;
}

export function asNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string' || value.trim() === '') return undefined;
  const number = Number(value);
  return Number.isNaN(number) ? undefined : number;
}

export function asBoolean(value: unknown): boolean {
  return value === true || value === 1 || value === '1';
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
