// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import {
  findUntolerated,
  formatTaint,
  parseToleration,
  type Taint,
  type TolerationSource,
  tolerates,
} from '../../src/model/taints.ts';
import { agree } from './agreement.ts';

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

agree('tolerations of one taint', {
  share: 0.07,
  inputs: fc.record<Pair>({ toleration, taint }),
  nasty: [
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
  question: (pair) => ({ kind: 'tolerates', ...pair }),
  ours: (pair) => ({ tolerates: doesTolerate(pair.toleration, pair.taint) }),
});

agree('taints of a node against tolerations of a pod', {
  share: 0.04,
  inputs: fc.record({
    taints: fc.array(taint, { maxLength: 3 }),
    tolerations: fc.array(toleration, { maxLength: 3 }),
  }),
  nasty: [],
  question: (asked) => ({ kind: 'untolerated', ...asked }),
  ours: ({ taints, tolerations }) => {
    const parsed = tolerations.map(parseToleration).flatMap((one) => (one.ok ? [one.value] : []));
    const found = findUntolerated(taints, parsed);
    return { untolerated: found === undefined ? null : formatTaint(found) };
  },
});

agree('taints as text', {
  share: 0.02,
  inputs: taint,
  nasty: [],
  question: (one) => ({ kind: 'taintText', taint: one }),
  ours: (one) => ({ text: formatTaint(one) }),
});
