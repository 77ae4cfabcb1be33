// SPDX-License-Identifier: Apache-2.0

export type ParameterValue = string | number | boolean | readonly string[];
/** An undefined value is a parameter that is not sent. */
export type Parameters = Readonly<Record<string, ParameterValue | undefined>>;

/**
 * Form encoding as Proxmox reads it. It splits on `&` and on `;`, and drops all after a second `=`, so every
 * value is percent-encoded whole; spaces are %20, since `+` is not decoded everywhere. Booleans are 0 and 1
 * (`true` is refused), an array is its key repeated.
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
 * SSH keys are stored url-encoded, so in a form they are encoded twice. A key in plain text has a space in
 * it; one without has been read back from Proxmox and is encoded already.
 */
export function encodeSshKeys(keys: string): string {
  return /\s/.test(keys) ? encodeURIComponent(keys.trim()) : keys;
}

/** One segment of a path. */
export function encodeSegment(text: string | number): string {
  return encodeURIComponent(text);
}

/** Parameters whose values no message may repeat: Proxmox quotes what it refuses. */
const SECRET_PARAMETERS = new Set(['password', 'cipassword', 'input-data']);

export function findSecretValues(form: Parameters): readonly string[] {
  return Object.entries(form).flatMap(([name, value]) => {
    if (typeof value !== 'string') return [];
    if (SECRET_PARAMETERS.has(name)) return [value, ...value.split('\n')];
    return name === 'url' ? findUrlPasswords(value) : [];
  });
}

/** Of `https://user:password@mirror.example/image`. */
function findUrlPasswords(url: string): readonly string[] {
  return URL.canParse(url) && new URL(url).password !== ''
    ? [new URL(url).password, decodeURIComponent(new URL(url).password)]
    : [];
}
