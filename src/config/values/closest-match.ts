// SPDX-License-Identifier: Apache-2.0
// The valid word that a mistyped one most likely meant: the fewest edits, where swapping two neighbours
// counts as one and upper and lower case do not differ.

/** Undefined when nothing is near enough to be helpful. */
export function closestMatch(word: string, candidates: Iterable<string>): string | undefined {
  // Longer than any key: not a typing mistake, and not worth the time.
  if (word.length > 64) return undefined;
  let best: { readonly candidate: string; readonly distance: number } | undefined;
  for (const candidate of candidates) {
    const distance = matchDistance(normalizeWord(word), normalizeWord(candidate));
    if (best === undefined || distance < best.distance) best = { candidate, distance };
  }
  const allowed = Math.max(1, Math.floor(word.length / 3));
  return best !== undefined && best.distance <= allowed ? best.candidate : undefined;
}

function matchDistance(word: string, candidate: string): number {
  // Half a word is a word begun, not a word mistyped.
  return word.length >= 3 && candidate.startsWith(word) ? 0.5 : editDistance(word, candidate);
}

// `node_groups`, `nodeGroups` and `node-groups` are the same word to whoever mistypes it.
function normalizeWord(word: string): string {
  return word.toLowerCase().replaceAll(/[-_]/g, '');
}

export function editDistance(left: string, right: string): number {
  let beforePrevious: readonly number[] = [];
  let previous: readonly number[] = Array.from({ length: right.length + 1 }, (_, i) => i);
  for (let i = 1; i <= left.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= right.length; j += 1) {
      const changed = left[i - 1] === right[j - 1] ? 0 : 1;
      const plainEdit = Math.min(
        cell(previous, j) + 1,
        cell(row, j - 1) + 1,
        cell(previous, j - 1) + changed,
      );
      const isSwap = left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1];
      row.push(isSwap ? Math.min(plainEdit, cell(beforePrevious, j - 2) + 1) : plainEdit);
    }
    beforePrevious = previous;
    previous = row;
  }
  return cell(previous, right.length);
}

// Outside the table: larger than any distance.
function cell(row: readonly number[], index: number): number {
  return row[index] ?? Number.MAX_SAFE_INTEGER / 2;
}
