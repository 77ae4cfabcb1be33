// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { type FilterReason, formatReason } from './index.ts';

const claim = 'default/data';

test.each<[FilterReason, string]>([
  [{ filter: 'NodeUnschedulable' }, 'the node is cordoned'],
  [{ filter: 'NodeName', required: 'n' }, 'the pod requires node n'],
  [
    { filter: 'TaintToleration', taint: { key: 'k', value: 'v', effect: 'NoSchedule' } },
    'taint k=v:NoSchedule is not tolerated',
  ],
  [
    { filter: 'NodeAffinity', part: 'selector', missing: { b: '2', a: '1' } },
    'labels a=1,b=2 are missing',
  ],
  [
    { filter: 'NodeAffinity', part: 'affinity', missing: {} },
    'no term of the node affinity matches',
  ],
  [
    { filter: 'NodePorts', port: { ip: '0.0.0.0', protocol: 'UDP', port: 53 } },
    'host port 53/UDP is in use',
  ],
  [
    {
      filter: 'NodeResourcesFit',
      shortfalls: [
        { resource: 'cpu', requested: 1500, used: 500, allocatable: 1000 },
        { resource: 'memory', requested: 2 ** 30, used: 0, allocatable: 2 ** 20 },
      ],
    },
    'cpu: 1500m requested, 500m of 1 used, memory: 1Gi requested, 0 of 1Mi used',
  ],
  [
    {
      filter: 'NodeResourcesFit',
      shortfalls: [
        { resource: 'memory', requested: 2 ** 32, used: 1_000, allocatable: 4_036_493 * 2 ** 10 },
      ],
    },
    'memory: 4Gi requested, 1Mi of 3941Mi used',
  ],
  [
    { filter: 'PodTopologySpread', problem: 'label-missing', topologyKey: 'zone' },
    'label zone is missing, which the topology spread needs',
  ],
  [
    {
      filter: 'PodTopologySpread',
      problem: 'skew',
      topologyKey: 'zone',
      domain: 'a',
      matching: 2,
      self: 1,
      minimum: 1,
      maxSkew: 1,
    },
    'zone a would have 3 matching pods, the domain with the fewest has 1, maxSkew is 1',
  ],
  [
    { filter: 'InterPodAffinity', problem: 'label-missing', topologyKey: 'zone' },
    'label zone is missing, which the pod affinity needs',
  ],
  [
    { filter: 'InterPodAffinity', problem: 'no-matching-pod', topologyKey: 'zone' },
    'no pod that its affinity requires is in the same zone',
  ],
  [
    {
      filter: 'InterPodAffinity',
      problem: 'own-anti-affinity',
      topologyKey: 'zone',
      domain: 'a',
      pods: 2,
    },
    'its anti-affinity excludes 2 pods in zone a',
  ],
  [
    {
      filter: 'InterPodAffinity',
      problem: 'existing-anti-affinity',
      topologyKey: 'zone',
      domain: 'a',
      pods: 2,
    },
    'the anti-affinity of 2 pods in zone a excludes it',
  ],
  [
    {
      filter: 'VolumeRestrictions',
      problem: 'disk-in-use',
      disk: { kind: 'iscsi', id: 'iqn', isReadOnly: false, pool: '', monitors: [] },
    },
    'disk iqn is in use on the node',
  ],
  [
    { filter: 'VolumeRestrictions', problem: 'claim-in-use', claim },
    'claim default/data is in use by another pod',
  ],
  [
    {
      filter: 'NodeVolumeLimits',
      problem: 'too-many',
      driver: 'csi',
      attached: 8,
      adding: 1,
      limit: 8,
    },
    'csi has 8 of 8 volumes attached, 1 more needed',
  ],
  [
    {
      filter: 'VolumeZone',
      problem: 'other-zone',
      volume: 'pv',
      topologyKey: 'zone',
      required: ['a', 'b'],
    },
    'volume pv requires zone a, b',
  ],
  [{ filter: 'NodeDeclaredFeatures', missing: ['A', 'B'] }, 'the node does not declare A, B'],
  [
    { filter: 'DynamicResources', problem: 'claims-not-supported', claims: ['gpu', 'nic'] },
    'resource claims gpu, nic are not supported: devices are not simulated',
  ],
  [
    { filter: 'VolumeBinding', problem: 'node-conflict', claim },
    'claim default/data has a volume that the node cannot reach',
  ],
  [
    { filter: 'VolumeBinding', problem: 'other-node-selected', claim },
    'claim default/data is being provisioned for another node',
  ],
  [
    { filter: 'VolumeBinding', problem: 'no-volume', claim },
    'claim default/data matches no volume on this node and none can be provisioned',
  ],
  [
    { filter: 'VolumeBinding', problem: 'no-space', claim },
    'claim default/data is larger than the free storage capacity',
  ],
  [
    { filter: 'VolumeBinding', problem: 'claim-lost', claim },
    'claim default/data has lost its volume',
  ],
  [
    { filter: 'VolumeZone', problem: 'claim-not-found', claim },
    'claim default/data does not exist',
  ],
])('formatReason formats %j', (reason, text) => {
  expect(formatReason(reason)).toBe(text);
});

test.each([
  ['claim-of-another-pod', 'belongs to another pod'],
  ['claim-terminating', 'is being deleted'],
  ['claim-unbound', 'is not bound'],
  ['claim-without-class', 'has neither a volume nor a storage class'],
  ['class-not-found', 'has a storage class that does not exist'],
  ['class-without-binding-mode', 'has a storage class without a binding mode'],
  ['volume-not-found', 'is bound to a volume that does not exist'],
] as const)('formatReason formats a claim with %s', (problem, text) => {
  expect(formatReason({ filter: 'VolumeBinding', problem, claim })).toBe(`claim ${claim} ${text}`);
});
