// SPDX-License-Identifier: Apache-2.0
// What parsing foreign text yields: a value, or the reason why there is none. A problem is a sentence
// fragment without position or subject ("quantity has unknown suffix 'gb'"); the caller knows where it stood.

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: string };

export function accepted<T>(value: T): Parsed<T> {
  return { ok: true, value };
}

export function refused<T = never>(problem: string): Parsed<T> {
  return { ok: false, problem };
}
