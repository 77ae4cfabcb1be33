// SPDX-License-Identifier: Apache-2.0
// Durations there are Go's texts. A bare number is refused except 0, though a comment in the code promises
// nanoseconds and the README speaks of seconds.

import { parseDuration } from '../../../model/duration.ts';
import type { Context } from '../context.ts';
import { isNull } from '../source/reader.ts';
import type { Tree } from '../source/tree.ts';

/** Our text for it; nothing when it is absent, null, or no duration. */
export function durationText({ work }: Context, tree: Tree | undefined): string | undefined {
  if (tree === undefined || isNull(tree)) return undefined;
  if (tree.kind !== 'scalar') {
    work.note(tree, 'not-carried', 'is not a duration such as 30s');
    return undefined;
  }
  const text = String(tree.value).trim();
  if (/^[+-]?\d+(?:\.\d+)?$/.test(text) && Number(text) !== 0) {
    work.note(
      tree,
      'carried-differently',
      'has no unit, which stops the program there; seconds were taken',
    );
    return `${text}s`;
  }
  if (parseDuration(text).ok) return text;
  work.note(tree, 'not-carried', 'is not a duration such as 30s or 1h30m');
  return undefined;
}
