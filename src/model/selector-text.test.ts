// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Requirement } from './requirement.ts';
import { SELECT_EVERYTHING, SELECT_NOTHING } from './selector.ts';
import { formatSelector, parseSelector } from './selector-text.ts';

function requirements(text: string): readonly Requirement[] {
  const selector = parseSelector(text);
  if (!selector.ok) throw new Error(selector.problem);
  return selector.value.selects === 'matching' ? selector.value.requirements : [];
}

describe('parseSelector', () => {
  test.each(['', ' ', '\t\r\n', '\u0000'])('nothing at all (%j) selects everything', (text) => {
    expect(parseSelector(text)).toEqual({ ok: true, value: SELECT_EVERYTHING });
  });

  test.each<[string, Requirement['operator'], string[]]>([
    ['a', 'Exists', []],
    ['!a', 'DoesNotExist', []],
    ['! a', 'DoesNotExist', []],
    ['a=b', 'In', ['b']],
    ['a==b', 'In', ['b']],
    ['a = b', 'In', ['b']],
    ['a=', 'In', ['']],
    ['a!=b', 'NotIn', ['b']],
    ['a in (b)', 'In', ['b']],
    ['a in(c,b,c)', 'In', ['b', 'c']],
    ['a in ()', 'In', ['']],
    ['a in (,)', 'In', ['']],
    ['a in (b,)', 'In', ['', 'b']],
    ['a in (b,,c)', 'In', ['', 'b', 'c']],
    ['a notin (b, c)', 'NotIn', ['b', 'c']],
    ['a>1', 'Gt', ['1']],
    ['a < 007', 'Lt', ['007']],
    ['a\u0000=b', 'In', ['b']],
    ['a=\u0000b', 'In', ['b']],
    ['a \u0000=b', 'Exists', []],
  ])('%j', (text, operator, values) => {
    expect(requirements(text)).toEqual([{ key: 'a', operator, values }]);
  });

  test('the words in and notin may be keys and values', () => {
    expect(requirements('in in (in,notin),notin=in')).toEqual([
      { key: 'in', operator: 'In', values: ['in', 'notin'] },
      { key: 'notin', operator: 'In', values: ['in'] },
    ]);
  });

  test('requirements come sorted by key, those of one key in their order', () => {
    expect(requirements('c,b=2,a,b=1').map(({ key, values }) => [key, ...values])).toEqual([
      ['a'],
      ['b', '2'],
      ['b', '1'],
      ['c'],
    ]);
  });

  test.each([
    [',', "found ',', expected a label key"],
    ['a,', 'found end of text, expected a label key'],
    ['a,,b', "found ',', expected a label key"],
    ['!', 'found end of text, expected a label key'],
    ['!!a', "found '!', expected a label key"],
    ['!a=b', "found '=', expected ',' or end of text"],
    ['a b', "found 'b', expected =, ==, !=, in, notin, > or <"],
    ['a!b', "found '!', expected =, ==, !=, in, notin, > or <"],
    ['a IN (b)', "found 'IN', expected =, ==, !=, in, notin, > or <"],
    ['a===b', "found '=', expected a value"],
    ['a=b c', "found 'c', expected ',' or end of text"],
    ['a in b', "found 'b', expected '('"],
    ['a in', "found end of text, expected '('"],
    ['a in (b', "found end of text, expected ',' or ')'"],
    ['a in (b c)', "found 'c', expected ',' or ')'"],
    ['a in (=)', "found '=', expected ',' or ')'"],
    ['a>', "operator Gt of key 'a' needs exactly one value, an integer"],
    ['a>=1', "found '=', expected a value"],
  ])("'%s' is refused: %s", (text, problem) => {
    expect(parseSelector(text)).toEqual({ ok: false, problem });
  });

  test.each(['-a', 'a=-', 'ä=b', 'a\u00a0=b', '/a', 'a>-1'])("'%s' is refused", (text) => {
    expect(parseSelector(text).ok).toBe(false);
  });
});

describe('formatSelector', () => {
  test.each([
    ['a,!b,c=d,e==f', 'a,!b,c=d,e=f'],
    ['a!=b,c in (y,x),d notin (x,y)', 'a!=b,c in (x,y),d notin (x,y)'],
    ['a > 1, b < 2', 'a>1,b<2'],
    ['a in (b),c notin (d)', 'a=b,c!=d'],
  ])('%s becomes %s', (text, expected) => {
    expect(formatSelector({ selects: 'matching', requirements: requirements(text) })).toBe(
      expected,
    );
  });

  test('nothing and everything have no text', () => {
    expect(formatSelector(SELECT_NOTHING)).toBe('');
    expect(formatSelector(SELECT_EVERYTHING)).toBe('');
  });

  test('what is written reads back', () => {
    const word = fc.stringMatching(/^[a-z][a-z0-9]{0,5}$/);
    const requirement: fc.Arbitrary<Requirement> = fc.oneof(
      fc.record({
        key: word,
        operator: fc.constantFrom('In', 'NotIn'),
        values: fc
          .uniqueArray(fc.oneof(word, fc.constant('')), { minLength: 1, maxLength: 3 })
          .map((values) => values.sort()),
      }),
      fc.record({
        key: word,
        operator: fc.constantFrom('Exists', 'DoesNotExist'),
        values: fc.constant([]),
      }),
      fc.record({
        key: word,
        operator: fc.constantFrom('Gt', 'Lt'),
        values: fc.nat().map((n) => [`${n}`]),
      }),
    );
    fc.assert(
      fc.property(fc.array(requirement), (list) => {
        const sorted = list.toSorted(
          (one, other) => Number(one.key > other.key) - Number(one.key < other.key),
        );
        expect(requirements(formatSelector({ selects: 'matching', requirements: list }))).toEqual(
          sorted,
        );
      }),
    );
  });
});
