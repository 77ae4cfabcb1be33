// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Labels } from './labels.ts';
import {
  type LabelSelectorSource,
  matches,
  parseLabelSelector,
  SELECT_EVERYTHING,
  SELECT_NOTHING,
} from './selector.ts';

function selects(source: LabelSelectorSource | null | undefined, labels: Labels): boolean {
  const selector = parseLabelSelector(source);
  if (!selector.ok) throw new Error(selector.problem);
  return matches(selector.value, labels);
}

describe('label selectors', () => {
  test('none selects nothing, an empty one everything', () => {
    expect(selects(null, {})).toBe(false);
    expect(selects(undefined, { a: 'b' })).toBe(false);
    expect(selects({}, {})).toBe(true);
    expect(selects({ matchLabels: null, matchExpressions: null }, { a: 'b' })).toBe(true);
    expect(parseLabelSelector({ matchLabels: {}, matchExpressions: [] })).toEqual({
      ok: true,
      value: SELECT_EVERYTHING,
    });
    expect(matches(SELECT_NOTHING, { a: 'b' })).toBe(false);
  });

  test('every label and every expression must match', () => {
    const source = {
      matchLabels: { app: 'web' },
      matchExpressions: [
        { key: 'tier', operator: 'In', values: ['front', 'edge'] },
        { key: 'legacy', operator: 'DoesNotExist' },
      ],
    };
    expect(selects(source, { app: 'web', tier: 'edge' })).toBe(true);
    expect(selects(source, { app: 'api', tier: 'edge' })).toBe(false);
    expect(selects(source, { app: 'web' })).toBe(false);
    expect(selects(source, { app: 'web', tier: 'edge', legacy: '' })).toBe(false);
  });

  test.each<[LabelSelectorSource, string]>([
    [{ matchLabels: { '': 'b' } }, 'key is empty'],
    [{ matchLabels: { a: '-' } }, "operator In of key 'a' has a bad value"],
    [{ matchExpressions: [{ key: 'a', operator: 'In' }] }, 'needs at least one value'],
    [
      { matchExpressions: [{ key: 'a', operator: 'Gt', values: ['1'] }] },
      'operator Gt is for node affinity only',
    ],
    [
      { matchExpressions: [{ key: 'a', operator: 'Lt', values: ['1'] }] },
      'operator Lt is for node affinity only',
    ],
  ])('%j is refused: %s', (source, problem) => {
    expect(parseLabelSelector(source)).toEqual({
      ok: false,
      problem: expect.stringContaining(problem),
    });
  });

  test('labels always match the selector made of them', () => {
    const word = fc.stringMatching(/^[a-z][a-z0-9]{0,5}$/);
    fc.assert(
      fc.property(fc.dictionary(word, word), fc.dictionary(word, word), (wanted, more) => {
        expect(selects({ matchLabels: wanted }, { ...more, ...wanted })).toBe(true);
      }),
    );
  });
});
