// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it, onTestFinished } from 'vitest';
import type { JsonObject, SimObject } from '../storage/objects.ts';
import { aWorkload, startSimCluster } from '../testing/sim-cluster.ts';

function start() {
  const cluster = startSimCluster({ nodeMonitorGraceMs: 40_000 });
  onTestFinished(() => cluster.stop());
  return cluster;
}

const LEASE = { name: 'n1', namespace: 'kube-node-lease' };

/** A node with a lease, as a kubelet registers it. */
function register({ sim }: ReturnType<typeof start>): void {
  sim.create('v1', 'nodes', {
    metadata: { name: 'n1' },
    status: {
      allocatable: { cpu: '2', memory: '4Gi', pods: '110' },
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  });
  sim.create('coordination.k8s.io/v1', 'leases', { metadata: LEASE, spec: {} });
}

function taintKeys(node: SimObject | undefined): readonly string[] {
  const { taints = [] } = (node?.['spec'] ?? {}) as { taints?: { key: string; effect: string }[] };
  return taints.map(({ key, effect }) => `${key.replace('node.kubernetes.io/', '')}:${effect}`);
}

describe('a new node', () => {
  it('is tainted until it is ready', async () => {
    const cluster = start();
    const node = cluster.sim.create('v1', 'nodes', { metadata: { name: 'n1' } });
    expect(taintKeys(node)).toEqual(['not-ready:NoSchedule']);
    cluster.sim.change('v1', 'nodes', {
      metadata: { name: 'n1' },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
    await cluster.advance(6);
    expect(taintKeys(cluster.sim.list('v1', 'nodes')[0])).toEqual([]);
  });
});

describe('a node without heartbeats', () => {
  it('becomes Unknown and unreachable, and recovers', async () => {
    const cluster = start();
    register(cluster);
    const renew = (count: number) =>
      cluster.sim.change('coordination.k8s.io/v1', 'leases', {
        metadata: LEASE,
        spec: { renewTime: String(count) },
      });
    for (let count = 0; count < 6; count += 1) {
      await cluster.advance(10);
      renew(count);
    }
    const node = () => cluster.sim.list('v1', 'nodes')[0];
    expect(taintKeys(node())).toEqual([]);
    await cluster.advance(50);
    expect(taintKeys(node())).toEqual(['unreachable:NoSchedule', 'unreachable:NoExecute']);
    expect(node()?.['status']).toMatchObject({
      conditions: [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' }],
    });
    renew(100);
    cluster.sim.change('v1', 'nodes', {
      metadata: { name: 'n1' },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
    await cluster.advance(6);
    expect(taintKeys(node())).toEqual([]);
  });

  it('loses its pods after their toleration, and they are replaced elsewhere', async () => {
    const cluster = start();
    register(cluster);
    cluster.sim.create('apps/v1', 'replicasets', aWorkload('web', { replicas: 1 }));
    await cluster.advance(2);
    const [pod] = cluster.pods();
    expect(pod?.['spec']).toMatchObject({ nodeName: 'n1' });
    cluster.addNode('n2');
    await cluster.advance(300);
    expect(cluster.pods()).toHaveLength(1);
    await cluster.advance(60);
    const nodeNames = cluster.pods().map(({ spec }) => (spec as JsonObject)['nodeName']);
    expect(nodeNames.sort()).toEqual(['n1', 'n2']);
    cluster.sim.remove('v1', 'nodes', { name: 'n1' });
    await cluster.advance(50);
    expect(cluster.pods()).toHaveLength(1);
  });
});

describe('a cordoned node', () => {
  it('has the taint of unschedulable nodes until it is uncordoned', async () => {
    const cluster = start();
    cluster.addNode('n1');
    await cluster.advance(5);
    const cordon = (unschedulable: boolean) =>
      cluster.sim.change('v1', 'nodes', { metadata: { name: 'n1' }, spec: { unschedulable } });
    cordon(true);
    await cluster.advance(1);
    expect(taintKeys(cluster.sim.list('v1', 'nodes')[0])).toEqual(['unschedulable:NoSchedule']);
    cordon(false);
    await cluster.advance(1);
    expect(taintKeys(cluster.sim.list('v1', 'nodes')[0])).toEqual([]);
  });
});
