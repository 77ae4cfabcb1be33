// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { Labels } from './labels.ts';
import {
  matchesNode,
  matchesNodeTerm,
  type NodeSelectorTermSource,
  parseNodeSelectorTerm,
  readNodeSelector,
} from './node-selector.ts';

const zone = (...values: string[]): NodeSelectorTermSource => ({
  matchExpressions: [{ key: 'zone', operator: 'In', values }],
});
const named = (operator: string, ...values: string[]): NodeSelectorTermSource => ({
  matchFields: [{ key: 'metadata.name', operator, values }],
});

function fitsNode(terms: readonly NodeSelectorTermSource[], labels: Labels, name = 'n1'): boolean {
  return matchesNode(readNodeSelector(terms), { name, labels });
}

describe('node affinity', () => {
  test('matches if all conditions of one term hold', () => {
    const both = { ...zone('a'), ...named('In', 'n1') };
    expect(fitsNode([zone('a'), zone('b')], { zone: 'b' })).toBe(true);
    expect(fitsNode([zone('a'), zone('b')], { zone: 'c' })).toBe(false);
    expect(fitsNode([both], { zone: 'a' })).toBe(true);
    expect(fitsNode([both], { zone: 'a' }, 'n2')).toBe(false);
    expect(fitsNode([both], { zone: 'b' })).toBe(false);
  });

  test('does not match without terms or with empty terms only', () => {
    expect(fitsNode([], {})).toBe(false);
    expect(fitsNode([{}], {})).toBe(false);
    expect(fitsNode([{ matchExpressions: [], matchFields: null }], {})).toBe(false);
  });

  test('compares integers with Gt and Lt', () => {
    const term = { matchExpressions: [{ key: 'cores', operator: 'Gt', values: ['4'] }] };
    expect(fitsNode([term], { cores: '8' })).toBe(true);
    expect(fitsNode([term], { cores: '4' })).toBe(false);
    expect(fitsNode([term], {})).toBe(false);
  });

  test('supports the field metadata.name only', () => {
    expect(fitsNode([named('NotIn', 'n1')], {})).toBe(false);
    expect(fitsNode([named('NotIn', 'n2')], {})).toBe(true);
    const other = { matchFields: [{ key: 'metadata.uid', operator: 'In', values: ['n1'] }] };
    expect(fitsNode([other], {})).toBe(false);
  });

  test('skips field conditions for a node without a name', () => {
    expect(fitsNode([named('In', 'n1')], {}, '')).toBe(true);
  });

  test('reports a malformed term, which matches nothing, and still applies the others', () => {
    const selector = readNodeSelector([named('Exists'), zone('a'), zone()]);
    expect(selector.problems).toEqual([
      "field 'metadata.name' has operator 'Exists'; fields accept In or NotIn",
      "operator In of key 'zone' needs at least one value",
    ]);
    expect(matchesNode(selector, { name: 'n1', labels: { zone: 'a' } })).toBe(true);
    expect(matchesNode(selector, { name: 'n1', labels: {} })).toBe(false);
  });

  test.each([[[]], [['n1', 'n2']]])(
    'refuses a field with the values %j, since it needs exactly one',
    (values) => {
      expect(parseNodeSelectorTerm(named('In', ...values))).toEqual({
        ok: false,
        problem: "field 'metadata.name' needs exactly one value",
      });
    },
  );

  test('matches a single term', () => {
    const term = parseNodeSelectorTerm(zone('a'));
    expect(term.ok && matchesNodeTerm(term.value, { name: '', labels: { zone: 'a' } })).toBe(true);
  });
});
