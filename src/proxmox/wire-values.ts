// SPDX-License-Identifier: Apache-2.0

export type ParameterValue = string | number | boolean | readonly string[];
/** Parameters with an undefined value are not sent. */
export type Parameters = Readonly<Record<string, ParameterValue | undefined>>;

/**
 * Encodes a form for the parser of Proxmox, which splits on `&` and on `;` and drops all after a second `=`. So every
 * value is percent-encoded completely. A space becomes %20, because some endpoints do not decode `+`. Booleans become 0
 * and 1 (Proxmox refuses `true`); an array repeats its key.
 */
export function encodeForm(parameters: Parameters): string {
  return Object.entries(parameters)
    .flatMap(([name, value]) => encodePairs(name, value))
    .join('&');
}

function encodePairs(name: string, value: ParameterValue | undefined): readonly string[] {
  if (value === undefined) return [];
  const values = typeof value === 'object' ? value : [formatScalar(value)];
  return values.map((item) => `${encodeURIComponent(name)}=${encodeURIComponent(item)}`);
}

function formatScalar(value: string | number | boolean): string {
  return typeof value === 'boolean' ? String(Number(value)) : String(value);
}

/**
 * Proxmox stores SSH keys URL-encoded, so a form encodes them twice. A key in plain text contains a space; a key
 * without one was read from Proxmox and is already encoded.
 */
export function encodeSshKeys(keys: string): string {
  return /\s/.test(keys) ? encodeURIComponent(keys.trim()) : keys;
}

/** Encodes one segment of a URL path. */
export function encodeSegment(text: string | number): string {
  return encodeURIComponent(text);
}

/** Parameters with secret values. Proxmox quotes refused values in its error texts, which must not reach a message. */
const SECRET_PARAMETERS = new Set(['password', 'cipassword', 'input-data']);

export function findSecretValues(form: Parameters): readonly string[] {
  return Object.entries(form).flatMap(([name, value]) => {
    if (typeof value !== 'string') return [];
    if (SECRET_PARAMETERS.has(name)) return [value, ...value.split('\n')];
    return name === 'url' ? findUrlPasswords(value) : [];
  });
}

/** The password in `https://user:password@mirror.example/image`, encoded and decoded. */
function findUrlPasswords(url: string): readonly string[] {
  return URL.canParse(url) && new URL(url).password !== ''
    ? [new URL(url).password, decodeURIComponent(new URL(url).password)]
    : [];
}

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
