// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import {
  findUntoleratedTaint,
  formatTaint,
  parseToleration,
  type Taint,
  type TolerationSource,
  tolerates,
} from '../../src/model/taints.ts';
import { testAgreement } from './agreement.ts';

const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] as const;
const VALUES = [
  '',
  'a',
  'b',
  '0',
  '1',
  '2',
  '10',
  '01',
  '-1',
  '+1',
  '-0',
  '9223372036854775807',
  '9223372036854775808',
];

const taint: fc.Arbitrary<Taint> = fc.record({
  key: fc.constantFrom('a', 'b', 'x.io/a'),
  value: fc.constantFrom(...VALUES),
  effect: fc.constantFrom(...EFFECTS),
});

const toleration: fc.Arbitrary<TolerationSource> = fc.record(
  {
    key: fc.constantFrom('', 'a', 'b', 'x.io/a', 'A'),
    operator: fc.constantFrom('', 'Equal', 'Exists', 'Exists', 'Lt', 'Gt', 'Gt', 'exists'),
    value: fc.constantFrom(...VALUES),
    effect: fc.constantFrom('', ...EFFECTS, 'noschedule'),
    tolerationSeconds: fc.option(fc.nat()),
  },
  { requiredKeys: [] },
);

function doesTolerate(source: TolerationSource, one: Taint): boolean {
  const parsed = parseToleration(source);
  return parsed.ok && tolerates(parsed.value, one);
}

interface Pair {
  readonly toleration: TolerationSource;
  readonly taint: Taint;
}

testAgreement('tolerations of one taint', {
  share: 0.07,
  inputs: fc.record<Pair>({ toleration, taint }),
  edgeCases: [
    { toleration: {}, taint: { key: 'a', value: '', effect: 'NoSchedule' } },
    { toleration: {}, taint: { key: 'a', value: 'b', effect: 'NoSchedule' } },
    { toleration: { operator: 'Exists' }, taint: { key: 'a', value: 'b', effect: 'NoExecute' } },
    {
      toleration: { operator: 'Exists', value: 'c' },
      taint: { key: 'a', value: 'b', effect: 'NoExecute' },
    },
    {
      toleration: { key: 'a', operator: 'Gt', value: '-1' },
      taint: { key: 'a', value: '0', effect: 'NoExecute' },
    },
  ],
  request: (pair) => ({ kind: 'tolerates', ...pair }),
  ours: (pair) => ({ tolerates: doesTolerate(pair.toleration, pair.taint) }),
});

testAgreement('taints of a node against tolerations of a pod', {
  share: 0.04,
  inputs: fc.record({
    taints: fc.array(taint, { maxLength: 3 }),
    tolerations: fc.array(toleration, { maxLength: 3 }),
  }),
  edgeCases: [],
  request: (input) => ({ kind: 'untolerated', ...input }),
  ours: ({ taints, tolerations }) => {
    const parsed = tolerations.map(parseToleration).flatMap((one) => (one.ok ? [one.value] : []));
    const found = findUntoleratedTaint(taints, parsed);
    return { untolerated: found === undefined ? null : formatTaint(found) };
  },
});

testAgreement('taints as text', {
  share: 0.02,
  inputs: taint,
  edgeCases: [],
  request: (one) => ({ kind: 'taintText', taint: one }),
  ours: (one) => ({ text: formatTaint(one) }),
});
