// SPDX-License-Identifier: Apache-2.0
// The result of parsing external text: a value, or the reason why it is invalid. A problem is a sentence
// fragment without position or subject ("quantity has unknown suffix 'gb'"); the caller adds where the text was
// found.

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: string };

export function accepted<T>(value: T): Parsed<T> {
  return { ok: true, value };
}

export function refused<T = never>(problem: string): Parsed<T> {
  return { ok: false, problem };
}
