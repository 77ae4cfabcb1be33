// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import {
  checkLabels,
  formatLabels,
  isKubeletRestrictedLabel,
  parseLabelKey,
  parseLabelValue,
} from './labels.ts';

const RULE = "must be letters, digits, '-', '_' and '.', and start and end with a letter or digit";

describe('parseLabelKey', () => {
  test.each([
    'a',
    'A_b.c-D9',
    'example.com/a',
    'constructor',
    'a'.repeat(63),
    `${'p'.repeat(253)}/${'n'.repeat(63)}`,
  ])("accepts '%s'", (key) => {
    expect(parseLabelKey(key)).toEqual({ ok: true, value: key });
  });

  test.each([
    ['', 'key is empty'],
    ['/', "prefix of key '/' must be lower case"],
    ['/a', "prefix of key '/a' must be lower case"],
    ['a/', "key 'a/' has no name"],
    ['a/b/c', "key 'a/b/c' has more than one '/'"],
    ['Example.com/a', "prefix of key 'Example.com/a' must be lower case"],
    [`${'p'.repeat(254)}/a`, 'is longer than 253 characters'],
    ['a'.repeat(64), 'is longer than 63 characters'],
    ['-a', `key '-a' ${RULE}`],
    ['a.', `key 'a.' ${RULE}`],
    ['x/_a', `key 'x/_a' ${RULE}`],
    ['a b', `key 'a b' ${RULE}`],
    ['__proto__', `key '__proto__' ${RULE}`],
  ])("refuses '%s'", (key, problem) => {
    expect(parseLabelKey(key)).toEqual({ ok: false, problem: expect.stringContaining(problem) });
  });
});

describe('parseLabelValue', () => {
  test.each(['', 'a', '0', 'A_b.c-D9', 'v'.repeat(63)])("accepts '%s'", (value) => {
    expect(parseLabelValue(value)).toEqual({ ok: true, value });
  });

  test.each([
    ['a/b', `value 'a/b' ${RULE}`],
    ['-', `value '-' ${RULE}`],
    ['a ', `value 'a ' ${RULE}`],
    ['ä', `value 'ä' ${RULE}`],
    ['v'.repeat(64), 'is longer than 63 characters'],
  ])("refuses '%s'", (value, problem) => {
    expect(parseLabelValue(value)).toEqual({
      ok: false,
      problem: expect.stringContaining(problem),
    });
  });
});

describe('labels', () => {
  test('checkLabels checks every key and value', () => {
    expect(checkLabels({ a: 'b' })).toEqual({ ok: true, value: { a: 'b' } });
    expect(checkLabels({ a: 'b', 'c d': '' })).toEqual({
      ok: false,
      problem: `key 'c d' ${RULE}`,
    });
    expect(checkLabels({ 'c d': '-' })).toEqual({ ok: false, problem: `key 'c d' ${RULE}` });
    expect(checkLabels({ a: 'b c' })).toEqual({
      ok: false,
      problem: `value 'b c' ${RULE} (of key 'a')`,
    });
  });

  test('formatLabels sorts by key', () => {
    expect(formatLabels({})).toBe('');
    expect(formatLabels({ b: '1', a: '', 'a-b': '2' })).toBe('a=,a-b=2,b=1');
  });
});

describe('isKubeletRestrictedLabel', () => {
  test.each([
    'node-role.kubernetes.io/worker',
    'node-role.kubernetes.io/control-plane',
    'kubernetes.io/role',
    'k8s.io/x',
    'x.k8s.io/y',
    'topology.kubernetes.io/rack',
    'node-restriction.kubernetes.io/x',
    'x.node-restriction.kubernetes.io/y',
    'xnode.kubernetes.io/y',
  ])('returns true for %s', (key) => {
    expect(isKubeletRestrictedLabel(key)).toBe(true);
  });

  test.each([
    'plain',
    'kubernetes.io',
    'kubernetes.iox',
    'example.com/kubernetes.io',
    'notkubernetes.io/x',
    'kubernetes.io.example.com/x',
    'autoscaler.proxmox/group',
    'kubernetes.io/hostname',
    'kubernetes.io/os',
    'kubernetes.io/arch',
    'topology.kubernetes.io/zone',
    'topology.kubernetes.io/region',
    'node.kubernetes.io/instance-type',
    'node.kubernetes.io/anything',
    'x.node.kubernetes.io/y',
    'kubelet.kubernetes.io/x',
    'x.kubelet.kubernetes.io/y',
    'failure-domain.beta.kubernetes.io/zone',
    'failure-domain.beta.kubernetes.io/region',
    'beta.kubernetes.io/instance-type',
    'beta.kubernetes.io/os',
    'beta.kubernetes.io/arch',
  ])('returns false for %s', (key) => {
    expect(isKubeletRestrictedLabel(key)).toBe(false);
  });
});
