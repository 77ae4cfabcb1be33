// SPDX-License-Identifier: Apache-2.0
// The KubeNodeSmith loader is strict: an unknown key is an error. The rest of such a file is imported and
// each unknown key gets a note. Keys that only its documentation contains get a specific note.

import { closestMatch } from '../../values/closest-match.ts';
import type { ImportContext } from '../context.ts';
import type { SourceSection } from '../source/tree.ts';
import { childPath } from '../source/tree.ts';

/** Keys that its examples document but no version of the loader accepts. */
const ONLY_DOCUMENTED: Readonly<Record<string, string>> = {
  vmTags: 'use proxmox.<region>.tags for VM tags',
  cpuCores: 'use pools[].size for the machine size',
  memoryMiB: 'use pools[].size for the machine size',
  tags: 'use proxmox.<region>.tags for VM tags',
};

export function noteUnknownKeys(
  { writer }: ImportContext,
  section: SourceSection,
  known: readonly string[],
): void {
  for (const key of section.keys().filter((name) => !known.includes(name))) {
    const where = { ...section.refTo(key), path: childPath(section.path, key) };
    writer.note(
      where,
      'not-imported',
      `is an unknown key, which is an error in the source system${unknownKeyHint(key, known)}`,
    );
  }
}

function unknownKeyHint(key: string, known: readonly string[]): string {
  const documented = Object.hasOwn(ONLY_DOCUMENTED, key) ? ONLY_DOCUMENTED[key] : undefined;
  if (documented !== undefined) return `, although its examples contain it; ${documented}`;
  const closest = closestMatch(key, known);
  return closest === undefined ? '' : `; did you mean '${closest}'?`;
}
