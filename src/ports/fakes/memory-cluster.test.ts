// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { mayAct } from '../cluster.ts';
import { clusterContract } from '../contract/cluster.contract.ts';
import type { NewNode } from '../contract/cluster-fixture.ts';
import { Unauthorized } from '../errors.ts';
import { advanceUntilSettled } from './advance-until-settled.ts';
import { type ClusterCall, MemoryCluster } from './memory-cluster.ts';
import { aClusterNode, aClusterPod } from './sample-cluster.ts';
import { SeededRandom } from './seeded-random.ts';
import { VirtualClock } from './virtual-clock.ts';

function memory() {
  const clock = new VirtualClock();
  const random = new SeededRandom(7);
  return { clock, random, cluster: new MemoryCluster({ clock, random }) };
}

clusterContract('memory', () => {
  const { clock, random, cluster } = memory();
  const { state } = cluster;
  const peers: MemoryCluster[] = [];
  return Promise.resolve({
    cluster,
    peer: () => {
      const peer = new MemoryCluster({ clock, random, state });
      peers.push(peer);
      return Promise.resolve(peer);
    },
    advance: (ms: number) => clock.advance(ms),
    advanceUntil: <T>(work: Promise<T>) => advanceUntilSettled(clock, work),
    now: () => clock.now(),
    disconnect: () => cluster.disconnect(),
    reconnect: () => cluster.reconnect(),
    addNode: (wanted: NewNode) => {
      const isReady = wanted.ready ?? true;
      const node = aClusterNode({
        ...wanted,
        uid: random.uuid(),
        systemUuid: wanted.systemUuid?.toLowerCase() ?? '',
        notReadyReason: isReady ? '' : 'KubeletNotReady',
      });
      state.putNode(node);
      return Promise.resolve({ name: node.name, uid: node.uid });
    },
    labelNode: (name, [key, value]) => {
      const { [key]: _old, ...others } = state.nodes.get(name)?.labels ?? {};
      const labels = value === null ? others : { ...others, [key]: value };
      return Promise.resolve(state.updateNode(name, { labels }));
    },
    removeNode: (name: string) => Promise.resolve(state.removeNode(name)),
    addPod: (name: string, nodeName: string) => {
      const pod = aClusterPod({ name, nodeName, uid: random.uuid() });
      state.putPod(pod);
      return Promise.resolve({ namespace: pod.namespace, name, uid: pod.uid });
    },
    protectPod: ({ namespace, name }) => {
      state.protectedPods.set(`${namespace}/${name}`, 'the budget needs 1 healthy pod');
      const selector = { selects: 'matching', requirements: [] } as const;
      const budget = { namespace, name: 'all', selector, disruptionsAllowed: 0 };
      state.putWorkloads({ disruptionBudgets: [budget] });
      return Promise.resolve();
    },
    addNamespace: (name, labels) => {
      const { namespaces } = state.workloads;
      state.putWorkloads({ namespaces: new Map([...namespaces, [name, labels]]) });
      return Promise.resolve();
    },
    attachVolume: (node, claim) => {
      const volume = `pv-${claim.name}`;
      state.volumeAttachments.push({ node, volume, claim });
      return Promise.resolve(volume);
    },
    removeLease: (name: string) => {
      state.leases.delete(name);
      return Promise.resolve();
    },
    tokens: () => Promise.resolve(state.existingTokens),
    events: (node: string) =>
      Promise.resolve(
        state.events
          .filter(({ regarding }) => regarding.name === node)
          .map(({ type, reason, message }) => `${type} ${reason} ${message}`),
      ),
    cleanup: async () => {
      for (const one of [cluster, ...peers]) await one.close();
    },
  });
});

describe('MemoryCluster', () => {
  const NODE = { name: 'worker-1', uid: 'uid-of-worker-1' };

  it('fails the next call once, and passes every call to onCall', async () => {
    const { cluster } = memory();
    cluster.state.putNode(aClusterNode());
    const observed: ClusterCall[] = [];
    cluster.onCall = (call) => observed.push(call);
    cluster.failNext('deleteNode', new Unauthorized('PERMISSION_MISSING', 'no'));
    await expect(cluster.deleteNode(NODE)).rejects.toMatchObject({ code: 'PERMISSION_MISSING' });
    expect(cluster.state.nodes.size).toBe(1);
    await cluster.deleteNode(NODE);
    expect(cluster.state.nodes.size).toBe(0);
    expect(observed).toEqual([
      { method: 'deleteNode', subject: 'worker-1' },
      { method: 'deleteNode', subject: 'worker-1' },
    ]);
    expect(cluster.calls).toEqual(observed);
  });

  it('drops a response after the call took effect', async () => {
    const { cluster } = memory();
    cluster.state.putNode(aClusterNode());
    cluster.dropResponse('deleteNode');
    await expect(cluster.deleteNode(NODE)).rejects.toMatchObject({
      code: 'KUBERNETES_UNREACHABLE',
      facts: { requestSent: true },
    });
    expect(cluster.state.nodes.size).toBe(0);
  });

  it('rejects view() before its first connection', async () => {
    const { clock, random } = memory();
    const cluster = new MemoryCluster({ clock, random, startDisconnected: true });
    await expect(cluster.view()).rejects.toMatchObject({ code: 'VIEW_STALE' });
    const synced = cluster.waitForChange();
    cluster.reconnect();
    await synced;
    await expect(cluster.view()).resolves.toMatchObject({ nodes: [], pods: [] });
  });

  it('keeps its view fresh while connected, even without changes', async () => {
    const { clock, cluster } = memory();
    const before = await cluster.view();
    await clock.advance(60_000);
    const after = await cluster.view();
    expect(after).toMatchObject({ revision: before.revision, freshAt: clock.now() });
  });
});

describe('mayAct', () => {
  it('is false as soon as one of the two clocks has passed the expiry', async () => {
    const { clock, cluster } = memory();
    const request = { name: 'x', holder: 'a', durationMs: 10_000 };
    const lease = await cluster.acquireLease(request);
    const start = clock.now();
    await clock.advance(9_999);
    expect(mayAct(lease, clock)).toBe(true);
    // The machine was suspended: only the wall clock advanced.
    clock.setWallClock(start + 10_000);
    expect(mayAct(lease, clock)).toBe(false);
    // The wall clock was set back.
    clock.setWallClock(start);
    expect(mayAct(lease, clock)).toBe(true);
    await clock.advance(1);
    expect(mayAct(lease, clock)).toBe(false);
  });
});
