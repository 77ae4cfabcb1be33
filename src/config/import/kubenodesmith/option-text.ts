// SPDX-License-Identifier: Apache-2.0
// Values of raw VM options.

/** A whole number written as text; everything else stays text. */
export function parseDecimal(text: string): number | undefined {
  return /^(?:0|[1-9]\d{0,14})$/.test(text) ? Number(text) : undefined;
}

/** Proxmox splits tags at semicolons, commas and blanks and writes them in lower case. */
export function splitTags(text: string): readonly string[] {
  return [...new Set(text.toLowerCase().split(/[;,\s]+/))].filter((tag) => tag !== '');
}
