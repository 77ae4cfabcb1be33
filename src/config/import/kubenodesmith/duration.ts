// SPDX-License-Identifier: Apache-2.0
// Durations of KubeNodeSmith have Go notation. It refuses a plain number except 0, although a comment in
// its code mentions nanoseconds and its README mentions seconds.

import { parseDuration } from '../../../model/duration.ts';
import type { ImportContext } from '../context.ts';
import { isNull } from '../source/reader.ts';
import type { SourceTree } from '../source/tree.ts';

/** The duration in our notation; undefined when it is absent, null or invalid. */
export function readDuration(
  { writer }: ImportContext,
  tree: SourceTree | undefined,
): string | undefined {
  if (tree === undefined || isNull(tree)) return undefined;
  if (tree.kind !== 'scalar') {
    writer.note(tree, 'not-imported', 'is not a duration such as 30s');
    return undefined;
  }
  const text = String(tree.value).trim();
  if (/^[+-]?\d+(?:\.\d+)?$/.test(text) && Number(text) !== 0) {
    writer.note(
      tree,
      'imported-differently',
      'has no unit, which is an error in the source system; interpreted as seconds',
    );
    return `${text}s`;
  }
  if (parseDuration(text).ok) return text;
  writer.note(tree, 'not-imported', 'is not a duration such as 30s or 1h30m');
  return undefined;
}
