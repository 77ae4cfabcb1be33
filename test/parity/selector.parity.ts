// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import type { Labels } from '../../src/model/labels.ts';
import {
  matchesNode,
  type NodeSelectorTermSource,
  readNodeSelector,
} from '../../src/model/node-selector.ts';
import type { RequirementSource } from '../../src/model/requirement.ts';
import {
  type LabelSelectorSource,
  matchesSelector,
  parseLabelSelector,
} from '../../src/model/selector.ts';
import { testAgreement, toResponse } from './agreement.ts';

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
const INVALID_OPERATORS = ['', 'in', 'Equals', 'Gt', 'Lt'];

interface SelectorCase {
  readonly selector: LabelSelectorSource | null;
  readonly labels: Labels;
}

testAgreement('label selectors', {
  share: 0.14,
  inputs: fc.record<SelectorCase>({
    selector: fc.option(
      fc.record(
        {
          matchLabels: fc.option(fc.dictionary(key, value, { maxKeys: 2 })),
          matchExpressions: fc.option(
            fc.array(expression([...LABEL_OPERATORS, ...LABEL_OPERATORS, ...INVALID_OPERATORS]), {
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
  edgeCases: [
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
  request: (input) => ({ kind: 'labelSelector', ...input }),
  ours: (input) =>
    toResponse(parseLabelSelector(input.selector), (selector) => ({
      matches: matchesSelector(selector, input.labels),
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

testAgreement('node affinity', {
  share: 0.13,
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
  edgeCases: [
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
  request: ({ terms, name, labels }) => ({
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
