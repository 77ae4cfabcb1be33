// SPDX-License-Identifier: Apache-2.0
// The watch cache on a real API server that is killed, compacts its history, and loses connections at random.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openKubernetesCluster } from '../../src/kubernetes/index.ts';
import type { Cluster } from '../../src/ports/cluster.ts';
import type { PvescalerError } from '../../src/ports/errors.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { systemClock, systemRandom } from '../../src/system/index.ts';
import { openClusterTransport } from '../kubernetes/cluster-bench.ts';
import { SeverableTransport } from '../kubernetes/severable-transport.ts';
import { type ControlPlane, startControlPlane, waitUntil } from './controlplane/index.ts';

let plane: ControlPlane;
let cluster: Cluster;
const transports: SeverableTransport[] = [];
let errors: PvescalerError[] = [];

beforeAll(async () => {
  plane = await startControlPlane({ nodeMonitorGraceSeconds: 600 });
  cluster = await openKubernetesCluster({
    source: { kind: 'kubeconfig', path: plane.kubeconfig },
    openTransport: async (tls) => {
      const transport = new SeverableTransport(await openClusterTransport(tls));
      transports.push(transport);
      return transport;
    },
    clock: systemClock,
    random: systemRandom,
    onError: (error) => errors.push(error),
    pageSize: 3,
  });
  await cluster.waitForChange({ afterRevision: 0 });
});
afterAll(async () => {
  await cluster.close();
  await plane.stop();
});
beforeEach(async () => {
  await plane.api.delete('/api/v1/nodes');
  await waitForMatchingView();
  errors = [];
});

function addNode(name: string): Promise<unknown> {
  return plane.api.create('/api/v1/nodes', { metadata: { name } });
}

async function waitForMatchingView(): Promise<void> {
  await waitUntil('the view equals the objects of the API server', async () => {
    const { nodes } = await cluster.view();
    const there = await plane.api.list('/api/v1/nodes');
    const key = (one: { name: string; uid: string }) => `${one.name} ${one.uid}`;
    return (
      JSON.stringify(nodes.map(key).sort()) ===
      JSON.stringify(there.map(({ metadata }) => key(metadata)).sort())
    );
  });
}

describe('the watch cache on a real API server', () => {
  it('keeps its view while the API server is down, then catches up and is fresh again', async () => {
    await addNode('before');
    await waitForMatchingView();
    await plane.killApiServer();
    await waitUntil('the outage is reported', () => Promise.resolve(errors.length > 0));
    const view = await cluster.view();
    expect(view.nodes.map(({ name }) => name)).toEqual(['before']);
    expect(view.freshAt).toBeLessThan(systemClock.now());
    await plane.startApiServer();
    const startedAt = systemClock.now();
    await addNode('after');
    await waitForMatchingView();
    // No pod changes: without events and bookmarks only the regular end of a watch proves that the view is fresh.
    await waitUntil('both collections are fresh', async () => {
      return (await cluster.view()).freshAt > startedAt;
    });
  });

  it('lists again when the server has compacted the missed events', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) await addNode(name);
    await waitForMatchingView();
    for (const transport of transports) transport.cutOff();
    await plane.api.delete('/api/v1/nodes/b');
    await addNode('f');
    await plane.compact();
    await plane.killApiServer();
    await plane.startApiServer();
    for (const transport of transports) transport.reconnect();
    await waitForMatchingView();
    expect((await cluster.view()).nodes.map(({ name }) => name).sort()).toEqual([
      'a',
      'c',
      'd',
      'e',
      'f',
    ]);
  });

  it('misses no change when connections are cut at random', async () => {
    const random = new SeededRandom(42);
    for (let step = 0; step < 120; step += 1) {
      const name = `n${random.integer(12)}`;
      const isThere = (await plane.api.call('GET', `/api/v1/nodes/${name}`)).status === 200;
      if (!isThere) await addNode(name);
      else if (random.integer(2) === 0) await plane.api.delete(`/api/v1/nodes/${name}`);
      else
        await plane.api.patch(`/api/v1/nodes/${name}`, { metadata: { labels: { s: `${step}` } } });
      if (random.integer(6) === 0) for (const transport of transports) transport.cutOff();
      if (random.integer(3) === 0) for (const transport of transports) transport.reconnect();
    }
    for (const transport of transports) transport.reconnect();
    await waitForMatchingView();
    const labels = async () =>
      (await plane.api.list('/api/v1/nodes')).map(({ metadata }) => metadata.labels?.['s'] ?? '');
    await waitUntil('the labels are the same', async () => {
      const { nodes } = await cluster.view();
      const seen = nodes.map((node) => node.labels['s'] ?? '');
      return JSON.stringify(seen.sort()) === JSON.stringify([...(await labels())].sort());
    });
    expect(errors.every(({ code }) => code === 'KUBERNETES_UNREACHABLE')).toBe(true);
  });
});
