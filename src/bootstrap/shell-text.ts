// SPDX-License-Identifier: Apache-2.0

/** Quotes a string as one word for a POSIX shell. */
export function quoteShell(text: string): string {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

export function joinLines(...texts: readonly string[]): string {
  return texts.map((text) => `${text}\n`).join('');
}
