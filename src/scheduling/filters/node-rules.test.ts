// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { PodSpecSource } from '../../model/pod-source.ts';
import { checkFit, rejectsEverywhere } from '../index.ts';
import { aCluster, aPod, type NodeOptions } from '../testing/builders.ts';

function verdict(spec: PodSpecSource, node: NodeOptions): ReturnType<typeof checkFit> {
  return checkFit(aCluster({ nodes: [node] }), aPod({ spec }), node.name ?? 'node-1');
}

const YES = { fits: true };

describe('NodeUnschedulable', () => {
  const NO = { fits: false, reasons: [{ filter: 'NodeUnschedulable' }] };
  const key = 'node.kubernetes.io/unschedulable';

  test('rejects a cordoned node', () => {
    expect(verdict({}, { unschedulable: true })).toEqual(NO);
    expect(verdict({}, { unschedulable: false })).toEqual(YES);
  });

  test.each([
    [{ key, operator: 'Exists', effect: 'NoSchedule' }],
    [{ key, operator: 'Exists' }],
    [{ key, operator: 'Equal', value: '', effect: 'NoSchedule' }],
    [{ operator: 'Exists' }],
  ])("accepts a pod that tolerates the cordon's taint: %j", (toleration) => {
    expect(verdict({ tolerations: [toleration] }, { unschedulable: true })).toEqual(YES);
  });

  test.each([
    [{ key, operator: 'Equal', value: 'x', effect: 'NoSchedule' }],
    [{ key, operator: 'Exists', effect: 'NoExecute' }],
    [{ key: 'other', operator: 'Exists' }],
  ])('rejects a pod with other tolerations: %j', (toleration) => {
    expect(verdict({ tolerations: [toleration] }, { unschedulable: true })).toEqual(NO);
  });
});

describe('NodeDeclaredFeatures', () => {
  const spec = { hostNetwork: true, hostUsers: false };
  const fits = (declaredFeatures: readonly string[], featureGates = {}): boolean =>
    checkFit(aCluster({ nodes: [{ declaredFeatures }], featureGates }), aPod({ spec }), 'node-1')
      .fits;

  test('rejects a node that does not declare a feature which the pod requires', () => {
    expect(verdict(spec, { declaredFeatures: ['Other'] })).toEqual({
      fits: false,
      reasons: [{ filter: 'NodeDeclaredFeatures', missing: ['UserNamespacesHostNetworkSupport'] }],
    });
    expect(fits(['Other', 'UserNamespacesHostNetworkSupport'])).toBe(true);
  });

  test('accepts every node while its feature gate is off', () => {
    expect(fits([], { NodeDeclaredFeatures: false })).toBe(true);
    expect(fits([], { NodeDeclaredFeatures: true })).toBe(false);
  });
});

describe('DynamicResources', () => {
  test('refuses a pod with resource claims on every node, because devices are not simulated', () => {
    const claims = [{ name: 'gpu' }, { name: 'nic' }];
    const result = verdict({ resourceClaims: claims }, {});
    expect(result).toEqual({
      fits: false,
      reasons: [
        { filter: 'DynamicResources', problem: 'claims-not-supported', claims: ['gpu', 'nic'] },
      ],
    });
    expect(!result.fits && result.reasons.every(rejectsEverywhere)).toBe(true);
  });
});

describe('NodeName', () => {
  test('rejects every node except the one that the pod names', () => {
    expect(verdict({ nodeName: 'node-1' }, {})).toEqual(YES);
    expect(verdict({ nodeName: 'other' }, {})).toEqual({
      fits: false,
      reasons: [{ filter: 'NodeName', required: 'other' }],
    });
  });
});

describe('TaintToleration', () => {
  test.each(['NoSchedule', 'NoExecute'])('rejects an untolerated %s taint', (effect) => {
    expect(verdict({}, { taints: [{ key: 'k', value: 'v', effect }] })).toEqual({
      fits: false,
      reasons: [{ filter: 'TaintToleration', taint: { key: 'k', value: 'v', effect } }],
    });
  });

  test('ignores an untolerated PreferNoSchedule taint', () => {
    expect(verdict({}, { taints: [{ key: 'k', effect: 'PreferNoSchedule' }] })).toEqual(YES);
  });

  test('requires a toleration for every taint', () => {
    const taints = [
      { key: 'a', effect: 'NoSchedule' },
      { key: 'b', effect: 'NoExecute' },
    ];
    const tolerations = [{ key: 'a', operator: 'Exists' }];
    expect(verdict({ tolerations }, { taints })).toMatchObject({
      reasons: [{ filter: 'TaintToleration', taint: { key: 'b' } }],
    });
    const both = [...tolerations, { key: 'b', operator: 'Exists' }];
    expect(verdict({ tolerations: both }, { taints })).toEqual(YES);
  });

  test.each([
    ['Gt', '4'],
    ['Lt', '6'],
  ])('compares numbers (%s) only with its feature gate', (operator, value) => {
    const pod = aPod({ spec: { tolerations: [{ key: 'load', operator, value }] } });
    const fits = (featureGates: object): boolean => {
      const nodes = [{ taints: [{ key: 'load', value: '5', effect: 'NoSchedule' }] }];
      return checkFit(aCluster({ nodes, featureGates }), pod, 'node-1').fits;
    };
    expect(fits({})).toBe(false);
    expect(fits({ TaintTolerationComparisonOperators: true })).toBe(true);
  });
});

describe('NodeAffinity', () => {
  const labels = { disk: 'ssd', cores: '8' };
  const term = (key: string, operator: string, values?: readonly string[]): PodSpecSource => ({
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key, operator, ...(values && { values }) }] }],
        },
      },
    },
  });
  const NO = {
    fits: false,
    reasons: [{ filter: 'NodeAffinity', part: 'affinity', missing: {} }],
  };

  test('requires every label of the node selector', () => {
    expect(verdict({ nodeSelector: { disk: 'ssd' } }, { labels })).toEqual(YES);
    expect(verdict({ nodeSelector: { disk: 'hdd', cores: '8', gone: '' } }, { labels })).toEqual({
      fits: false,
      reasons: [{ filter: 'NodeAffinity', part: 'selector', missing: { disk: 'hdd', gone: '' } }],
    });
  });

  test('does not treat inherited object properties as labels', () => {
    expect(verdict({ nodeSelector: { toString: 'x' } }, { labels }).fits).toBe(false);
  });

  test.each([
    ['disk', 'In', ['ssd'], true],
    ['disk', 'In', ['hdd'], false],
    ['disk', 'NotIn', ['hdd'], true],
    ['gone', 'NotIn', ['hdd'], true],
    ['gone', 'Exists', undefined, false],
    ['gone', 'DoesNotExist', undefined, true],
    ['cores', 'Gt', ['4'], true],
    ['cores', 'Lt', ['4'], false],
  ] as const)('evaluates %s %s %j to %s', (...[key, operator, values, isMatch]) => {
    expect(verdict(term(key, operator, values), { labels })).toEqual(isMatch ? YES : NO);
  });

  test('requires one matching term, and an empty term matches nothing', () => {
    const terms = (nodeSelectorTerms: object[]): PodSpecSource => ({
      affinity: {
        nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
      },
    });
    const ssd = { matchExpressions: [{ key: 'disk', operator: 'In', values: ['ssd'] }] };
    const hdd = { matchExpressions: [{ key: 'disk', operator: 'In', values: ['hdd'] }] };
    expect(verdict(terms([hdd, ssd]), { labels })).toEqual(YES);
    expect(verdict(terms([{}]), { labels })).toEqual(NO);
    expect(verdict(terms([]), { labels })).toEqual(NO);
    const named = { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node-1'] }] };
    expect(verdict(terms([named]), { labels })).toEqual(YES);
    expect(verdict(terms([named]), { name: 'node-2' })).toEqual(NO);
  });

  test('requires both the node selector and the node affinity', () => {
    const spec = { ...term('disk', 'In', ['ssd']), nodeSelector: { cores: '8' } };
    expect(verdict(spec, { labels })).toEqual(YES);
    expect(verdict(spec, { labels: { disk: 'ssd' } }).fits).toBe(false);
    expect(verdict(spec, { labels: { cores: '8' } })).toEqual(NO);
  });
});
