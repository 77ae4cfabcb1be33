// SPDX-License-Identifier: Apache-2.0

/** One word for a POSIX shell, whatever is in it. */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

export function lines(...texts: readonly string[]): string {
  return texts.map((text) => `${text}\n`).join('');
}
