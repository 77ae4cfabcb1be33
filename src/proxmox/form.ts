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
