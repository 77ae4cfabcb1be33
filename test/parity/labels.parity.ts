// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import {
  isKubeletRestrictedLabel,
  parseLabelKey,
  parseLabelValue,
} from '../../src/model/labels.ts';
import { parseDnsLabel, parseDnsSubdomain } from '../../src/model/names.ts';
import type { Parsed } from '../../src/model/parsed.ts';
import { type Agreement, testAgreement, toResponse } from './agreement.ts';

const word = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.string({ unit: fc.constantFrom(...'abz019AZ-_.'.split('')), maxLength: 6 }),
  },
  {
    weight: 2,
    arbitrary: fc.string({ unit: fc.constantFrom(...'abz019-.'.split('')), maxLength: 6 }),
  },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 4 }) },
  { weight: 1, arbitrary: fc.integer({ min: 60, max: 66 }).map((length) => 'a'.repeat(length)) },
  {
    weight: 1,
    arbitrary: fc
      .integer({ min: 250, max: 256 })
      .map((length) => 'a.b'.repeat(100).slice(0, length)),
  },
);

const slashed = fc.array(word, { minLength: 1, maxLength: 3 }).map((words) => words.join('/'));

const EDGE_CASES = [
  '|/|a/|/a|a//b|a/b/c|a|A|-|a-|-a|_a|a_|a.b|a..b|.a|a.|0|example.com/a|Example.com/a|example_com/a',
  'example..com/a|example.com/A_b.c-d|ä|a b|a\n|\u0000',
]
  .flatMap((row) => row.split('|'))
  .concat('a'.repeat(63), 'a'.repeat(64), `a/${'b'.repeat(64)}`)
  .concat(`${'a'.repeat(253)}/b`, `${'a'.repeat(254)}/b`);

function validation(kind: string, parse: (text: string) => Parsed<string>): Agreement<string> {
  return {
    share: 0.03,
    inputs: slashed,
    edgeCases: EDGE_CASES,
    request: (text) => ({ kind, text }),
    ours: (text) => toResponse(parse(text), () => ({})),
  };
}

testAgreement('label keys', validation('labelKey', parseLabelKey));
testAgreement('label values', { ...validation('labelValue', parseLabelValue), inputs: word });
testAgreement('DNS labels', { ...validation('dnsLabel', parseDnsLabel), inputs: word });
testAgreement('DNS subdomains', { ...validation('dnsSubdomain', parseDnsSubdomain), inputs: word });

const domain = fc
  .tuple(
    fc.constantFrom('', '', 'x.', 'x', '.', 'kubernetes.io.'),
    fc.constantFrom(
      '',
      'node.',
      'kubelet.',
      'topology.',
      'beta.',
      'node-role.',
      'node-restriction.',
      'failure-domain.beta.',
    ),
    fc.constantFrom(
      'kubernetes.io',
      'k8s.io',
      'kubernetes.iO',
      'kubernetes.io.evil',
      'example.com',
      'kubernetes',
    ),
    fc.constantFrom('/', '/', '/', '', '//'),
    fc.constantFrom(
      'hostname',
      'zone',
      'region',
      'instance-type',
      'os',
      'arch',
      'control-plane',
      'x',
      '',
      'x/y',
    ),
  )
  .map((parts) => parts.join(''));

testAgreement('labels a kubelet may not set', {
  share: 0.03,
  inputs: domain,
  edgeCases: [
    '|plain|kubernetes.io|kubernetes.io/hostname|kubernetes.io/x|k8s.io/x|x.k8s.io/x|xk8s.io/x',
    'node-role.kubernetes.io/worker|node-role.kubernetes.io/control-plane|beta.kubernetes.io/arch',
    'x.node.kubernetes.io/y|x.kubelet.kubernetes.io/y|node-restriction.kubernetes.io/x|autoscaler.proxmox/group',
    'topology.kubernetes.io/zone|topology.kubernetes.io/host|failure-domain.beta.kubernetes.io/zone',
  ].flatMap((row) => row.split('|')),
  request: (text) => ({ kind: 'kubeletLabel', text }),
  ours: (text) => ({ mayNotSet: isKubeletRestrictedLabel(text) }),
});
