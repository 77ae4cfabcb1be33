// SPDX-License-Identifier: Apache-2.0
import type { Parameters } from './form.ts';

/** Parameters whose values no message may repeat: Proxmox quotes what it refuses. */
const SECRET = new Set(['password', 'cipassword', 'input-data']);

export function secretsIn(form: Parameters): readonly string[] {
  return Object.entries(form).flatMap(([name, value]) => {
    if (typeof value !== 'string') return [];
    if (SECRET.has(name)) return [value, ...value.split('\n')];
    return name === 'url' ? passwordIn(value) : [];
  });
}

/** Of `https://user:password@mirror.example/image`. */
function passwordIn(url: string): readonly string[] {
  return URL.canParse(url) && new URL(url).password !== ''
    ? [new URL(url).password, decodeURIComponent(new URL(url).password)]
    : [];
}
