// SPDX-License-Identifier: Apache-2.0
// Finds the valid word closest to a mistyped one: the fewest edits, where swapping two adjacent characters
// counts as one edit and case is ignored.

/** Undefined when no candidate is close enough. */
export function closestMatch(word: string, candidates: Iterable<string>): string | undefined {
  // Longer than any key, so not a typing mistake. Also bounds the run time.
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
  // A prefix of a candidate is an abbreviation, not a typing mistake.
  return word.length >= 3 && candidate.startsWith(word) ? 0.5 : editDistance(word, candidate);
}

// `node_groups`, `nodeGroups` and `node-groups` count as the same word.
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

// Outside the table, returns a value larger than any distance.
function cell(row: readonly number[], index: number): number {
  return row[index] ?? Number.MAX_SAFE_INTEGER / 2;
}
