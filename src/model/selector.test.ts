// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Labels } from './labels.ts';
import {
  type LabelSelectorSource,
  matchesSelector,
  parseLabelSelector,
  SELECT_NOTHING,
} from './selector.ts';

function selects(source: LabelSelectorSource | null | undefined, labels: Labels): boolean {
  const selector = parseLabelSelector(source);
  if (!selector.ok) throw new Error(selector.problem);
  return matchesSelector(selector.value, labels);
}

describe('label selectors', () => {
  test('select nothing if absent and everything if empty', () => {
    expect(selects(null, {})).toBe(false);
    expect(selects(undefined, { a: 'b' })).toBe(false);
    expect(selects({}, {})).toBe(true);
    expect(selects({ matchLabels: null, matchExpressions: null }, { a: 'b' })).toBe(true);
    expect(parseLabelSelector({ matchLabels: {}, matchExpressions: [] })).toEqual({
      ok: true,
      value: { selects: 'matching', requirements: [] },
    });
    expect(matchesSelector(SELECT_NOTHING, { a: 'b' })).toBe(false);
  });

  test('require every label and every expression', () => {
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
    [{ matchLabels: { a: '-' } }, "operator In of key 'a' has an invalid value"],
    [{ matchExpressions: [{ key: 'a', operator: 'In' }] }, 'needs at least one value'],
    [
      { matchExpressions: [{ key: 'a', operator: 'Gt', values: ['1'] }] },
      'operator Gt is supported in node affinity only',
    ],
    [
      { matchExpressions: [{ key: 'a', operator: 'Lt', values: ['1'] }] },
      'operator Lt is supported in node affinity only',
    ],
  ])('are refused: %j (%s)', (source, problem) => {
    expect(parseLabelSelector(source)).toEqual({
      ok: false,
      problem: expect.stringContaining(problem),
    });
  });

  test('match the labels they were built from', () => {
    const word = fc.stringMatching(/^[a-z][a-z0-9]{0,5}$/);
    fc.assert(
      fc.property(fc.dictionary(word, word), fc.dictionary(word, word), (wanted, more) => {
        expect(selects({ matchLabels: wanted }, { ...more, ...wanted })).toBe(true);
      }),
    );
  });
});
