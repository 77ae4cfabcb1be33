// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { checkFit, type KubernetesObjects, snapshotFromKubernetes } from './index.ts';
import { aCluster, aPod, nodeSource } from './testing/builders.ts';

const metadata = { name: 'odd' };
const bad = { matchExpressions: [{ key: 'a', operator: 'Nonsense' }] };

describe('snapshotFromKubernetes', () => {
  test('requires nodes only', () => {
    const read = snapshotFromKubernetes({ nodes: [nodeSource()] });
    expect(read.ok && read.value.nodes.map(({ name }) => name)).toEqual(['node-1']);
    expect(read.ok && [...read.value.nominated]).toEqual([]);
  });

  test.each<[string, Partial<KubernetesObjects>]>([
    ["node 'odd'", { nodes: [nodeSource(), { metadata, status: { allocatable: { cpu: '?' } } }] }],
    ["pod 'odd'", { pods: [{ metadata, spec: { tolerations: [{ operator: '?' }] } }] }],
    [
      "DaemonSet 'odd'",
      {
        daemonSets: [
          { metadata, spec: { template: { spec: { tolerations: [{ operator: '?' }] } } } },
        ],
      },
    ],
    ["volume 'odd'", { persistentVolumes: [{ metadata, spec: { capacity: { storage: '?' } } }] }],
    ["claim 'odd'", { persistentVolumeClaims: [{ metadata, spec: { selector: bad } }] }],
    ['storage capacity', { csiStorageCapacities: [{ storageClassName: 's', nodeTopology: bad }] }],
  ])('refuses invalid objects and names %s', (named, objects) => {
    expect(snapshotFromKubernetes({ nodes: [], ...objects })).toMatchObject({
      ok: false,
      problem: expect.stringContaining(named),
    });
  });

  test('ignores the nominated node of a running pod', () => {
    const snapshot = aCluster({
      pods: [
        { name: 'runs', on: 'node-1', cpu: '2', status: { nominatedNodeName: 'node-1' } },
        { name: 'idle', cpu: '2' },
        { name: 'waits', cpu: '1', status: { nominatedNodeName: 'node-1' } },
      ],
    });
    expect(
      [...snapshot.nominated].map(([node, pods]) => [node, pods.map(({ name }) => name)]),
    ).toEqual([['node-1', ['waits']]]);
    expect(checkFit(snapshot, aPod({ cpu: '1' }), 'node-1').fits).toBe(true);
    expect(checkFit(snapshot, aPod({ cpu: '1001m' }), 'node-1').fits).toBe(false);
  });
});
