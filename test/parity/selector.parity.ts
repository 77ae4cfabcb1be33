// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import type { Labels } from '../../src/model/labels.ts';
import {
  matchesNode,
  type NodeSelectorTermSource,
  readNodeSelector,
} from '../../src/model/node-selector.ts';
import type { RequirementSource } from '../../src/model/requirement.ts';
import { type LabelSelectorSource, matches, parseLabelSelector } from '../../src/model/selector.ts';
import { parseSelector } from '../../src/model/selector-text.ts';
import { agree, told } from './agreement.ts';

const KEYS = ['a', 'b', 'c', 'in', 'notin', 'x.io/a', 'constructor', 'toString'];
const VALUES = [
  '',
  'a',
  'b',
  'in',
  '1',
  '2',
  '10',
  '007',
  '9223372036854775807',
  '9223372036854775808',
];

const key = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...KEYS) },
  { weight: 1, arbitrary: fc.constantFrom('', 'A/b', '-a', 'a/b/c', 'k'.repeat(64)) },
);
const value = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...VALUES) },
  { weight: 1, arbitrary: fc.constantFrom('-1', '+1', '1.5', 'a-', 'a b', 'v'.repeat(64)) },
);
const labels: fc.Arbitrary<Labels> = fc.dictionary(
  fc.constantFrom(...KEYS),
  fc.oneof(fc.constantFrom(...VALUES), fc.constantFrom('-5', '+5', '-', '1_0', ' 1')),
  { maxKeys: 5 },
);

const blank = fc.constantFrom('', '', '', ' ', '\t', '\n ', '\u0000', '\u00a0');
const token = fc.oneof(
  key,
  value,
  fc.constantFrom(
    ',',
    '=',
    '==',
    '!=',
    '!',
    '(',
    ')',
    '>',
    '<',
    ' in ',
    ' notin ',
    '===',
    '=!',
    '&',
  ),
);
const soup = fc
  .array(fc.tuple(token, blank), { maxLength: 9 })
  .map((parts) => parts.flat().join(''));

const written = fc.oneof(
  fc.tuple(key, blank, fc.constantFrom('=', '==', '!=', '>', '<'), blank, value),
  fc.tuple(
    key,
    fc.constantFrom(' in ', ' notin ', ' in', 'in '),
    blank,
    fc.array(value, { maxLength: 3 }).map((set) => `(${set.join(',')})`),
  ),
  fc.tuple(fc.constantFrom('', '!', '! '), key, blank),
);
const sentence = fc
  .array(
    written.map((parts) => parts.join('')),
    { maxLength: 4 },
  )
  .map((parts) => parts.join(','));

interface TextCase {
  readonly text: string;
  readonly labels: Labels;
}

agree('selectors as text', {
  share: 0.12,
  inputs: fc.record<TextCase>({
    text: fc.oneof({ weight: 3, arbitrary: sentence }, { weight: 1, arbitrary: soup }),
    labels,
  }),
  nasty: [
    '| |,|a,|,a|a,,b|!|!a|!!a|! a|!a=b|a!|a!b|a=|a==|a===b|a=!b|a=b|a = b|a==b|a!=b|a!= |a in (b)|a in(b)|a in b',
    'a in ()|a in (,)|a in (b,)|a in (b,,c)|a in (b c)|a in (b|a in b)|a notin (a)|in|in in (in)|in=notin|in in',
    'notin notin (notin)|a IN (b)|a>1|a<1|a>|a>b|a>-1|a>1,a<3|a>1.5|a> 007|a>=1|(a)|a\u0000|a\u0000=b|a \u0000=b',
    '\u0000a|a=\u0000b|a\u0000\u0000b|a\u00a0=b|ä=b|a=ä|/a=b|a=b,a=c,a!=d|b,a|x.io/a=b|X.io/a=b',
  ]
    .flatMap((row) => row.split('|'))
    .concat(`${'k'.repeat(64)}=b`, `a=${'v'.repeat(64)}`)
    .map((text) => ({ text, labels: { a: '2', in: 'in' } })),
  question: (asked) => ({ kind: 'selectorText', ...asked }),
  ours: (asked) =>
    told(parseSelector(asked.text), (selector) => ({
      requirements: selector.selects === 'matching' ? selector.requirements : [],
      matches: matches(selector, asked.labels),
    })),
});

function expression(operators: readonly string[]): fc.Arbitrary<RequirementSource> {
  return fc.record(
    {
      key,
      operator: fc.constantFrom(...operators),
      values: fc.option(fc.array(value, { maxLength: 3 })),
    },
    { requiredKeys: ['key', 'operator'] },
  );
}

const LABEL_OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'];
const STRANGE_OPERATORS = ['', 'in', 'Equals', 'Gt', 'Lt'];

interface SelectorCase {
  readonly selector: LabelSelectorSource | null;
  readonly labels: Labels;
}

agree('label selectors', {
  share: 0.07,
  inputs: fc.record<SelectorCase>({
    selector: fc.option(
      fc.record(
        {
          matchLabels: fc.option(fc.dictionary(key, value, { maxKeys: 2 })),
          matchExpressions: fc.option(
            fc.array(expression([...LABEL_OPERATORS, ...LABEL_OPERATORS, ...STRANGE_OPERATORS]), {
              maxLength: 3,
            }),
          ),
        },
        { requiredKeys: [] },
      ),
      { freq: 20 },
    ),
    labels,
  }),
  nasty: [
    { selector: null, labels: {} },
    { selector: {}, labels: { a: 'b' } },
    { selector: { matchLabels: { a: '' } }, labels: {} },
    { selector: { matchLabels: { constructor: '' } }, labels: {} },
    {
      selector: { matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['b'] }] },
      labels: {},
    },
    { selector: { matchExpressions: [{ key: 'a', operator: 'NotIn' }] }, labels: {} },
    {
      selector: { matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] },
      labels: {},
    },
    { selector: { matchExpressions: [{ key: 'toString', operator: 'DoesNotExist' }] }, labels: {} },
  ],
  question: (asked) => ({ kind: 'labelSelector', ...asked }),
  ours: (asked) =>
    told(parseLabelSelector(asked.selector), (selector) => ({
      matches: matches(selector, asked.labels),
    })),
});

const nodeExpression = expression([...LABEL_OPERATORS, 'Gt', 'Lt', 'Gt', 'Lt', '', 'gt']);
const fieldExpression: fc.Arbitrary<RequirementSource> = fc.record({
  key: fc.constantFrom('metadata.name', 'metadata.name', 'metadata.uid'),
  operator: fc.constantFrom('In', 'NotIn', 'In', 'NotIn', 'Exists'),
  values: fc.array(fc.constantFrom('n1', 'n2', ''), { minLength: 1, maxLength: 2 }),
});

interface NodeCase {
  readonly terms: readonly NodeSelectorTermSource[];
  readonly name: string;
  readonly labels: Labels;
}

agree('node affinity', {
  share: 0.08,
  inputs: fc.record<NodeCase>({
    terms: fc.array(
      fc.record(
        {
          matchExpressions: fc.option(fc.array(nodeExpression, { maxLength: 3 })),
          matchFields: fc.option(fc.array(fieldExpression, { maxLength: 2 })),
        },
        { requiredKeys: [] },
      ),
      { maxLength: 3 },
    ),
    name: fc.constantFrom('n1', 'n1', 'n2', ''),
    labels,
  }),
  nasty: [
    { terms: [], name: 'n1', labels: {} },
    { terms: [{}], name: 'n1', labels: {} },
    {
      terms: [{ matchExpressions: [{ key: 'a', operator: 'Gt', values: ['-1'] }] }],
      name: 'n1',
      labels: { a: '5' },
    },
    {
      terms: [{ matchExpressions: [{ key: 'a', operator: 'Lt', values: ['1'] }] }],
      name: 'n1',
      labels: { a: '-5' },
    },
    {
      terms: [{ matchExpressions: [{ key: 'a', operator: 'Lt', values: ['7'] }] }],
      name: 'n1',
      labels: { a: '+5' },
    },
    {
      terms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] }],
      name: '',
      labels: {},
    },
  ],
  question: ({ terms, name, labels }) => ({
    kind: 'nodeSelector',
    selector: { nodeSelectorTerms: terms },
    nodeName: name,
    labels,
  }),
  ours: ({ terms, name, labels }) => {
    const selector = readNodeSelector(terms);
    return {
      matches: matchesNode(selector, { name, labels }),
      wellFormed: selector.problems.length === 0,
    };
  },
});
