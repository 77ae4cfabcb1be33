// SPDX-License-Identifier: Apache-2.0

/** Quotes a string as one argument for a POSIX shell. A NUL character cannot be passed to a program at all. */
export function quoteShell(text: string): string {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
