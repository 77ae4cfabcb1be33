// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it, onTestFinished } from 'vitest';
import type { JsonObject, SimObject } from '../storage/objects.ts';
import { aTemplate, aWorkload, nodeNameOf, startSimCluster } from '../testing/sim-cluster.ts';

function start() {
  const cluster = startSimCluster();
  onTestFinished(() => cluster.stop());
  return cluster;
}

type Cluster = ReturnType<typeof start>;

async function place(
  cluster: Cluster,
  replicas: number,
  { cpu = '100m', ...spec }: JsonObject & { readonly cpu?: string } = {},
) {
  const template = aTemplate('web', spec, { cpu });
  cluster.sim.create('apps/v1', 'replicasets', aWorkload('web', { replicas, template }));
  await cluster.advance(5);
  return cluster.pods().map(nodeNameOf).sort();
}

function messageOf(pod: SimObject | undefined): unknown {
  const { conditions } = pod!['status'] as { conditions: JsonObject[] };
  return conditions.find(({ type }) => type === 'PodScheduled')?.['message'];
}

const MATCH = { labelSelector: { matchLabels: { app: 'web' } } };
const ZONES = { a: { labels: { zone: 'a' } }, b: { labels: { zone: 'b' } } };

describe('the scheduler', () => {
  it('prefers the node with the most free resources', async () => {
    const cluster = start();
    for (const name of ['n1', 'n2']) cluster.addNode(name);
    expect(await place(cluster, 4)).toEqual(['n1', 'n1', 'n2', 'n2']);
  });

  it('distributes pods without requests', async () => {
    const cluster = start();
    for (const name of ['n1', 'n2']) cluster.addNode(name);
    expect(await place(cluster, 4, { cpu: '0' })).toEqual(['n1', 'n1', 'n2', 'n2']);
  });

  it('leaves a pod pending that fits nowhere, says why, and binds it to a new node', async () => {
    const cluster = start();
    cluster.addNode('n1');
    cluster.addNode('n2', { taints: [{ key: 'dedicated', effect: 'NoSchedule' }] });
    expect(await place(cluster, 2, { cpu: '1500m' })).toEqual(['', 'n1']);
    const pending = cluster.pods().find((pod) => nodeNameOf(pod) === '');
    expect(messageOf(pending)).toBe(
      '0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {dedicated:NoSchedule}.',
    );
    cluster.addNode('n3');
    await cluster.advance(5);
    expect(cluster.pods().map(nodeNameOf).sort()).toEqual(['n1', 'n3']);
  });

  it('honours node selector, host ports and cordons', async () => {
    const cluster = start();
    cluster.addNode('n1', ZONES.a);
    cluster.addNode('n2', ZONES.b);
    cluster.addNode('n3', ZONES.b);
    cluster.sim.change('v1', 'nodes', { metadata: { name: 'n3' }, spec: { unschedulable: true } });
    await cluster.advance(1);
    const containers = [{ name: 'm', image: 'x', ports: [{ containerPort: 80, hostPort: 80 }] }];
    const spec = { nodeSelector: { zone: 'b' }, containers };
    expect(await place(cluster, 2, spec)).toEqual(['', 'n2']);
  });

  it('keeps pods with anti-affinity apart', async () => {
    const cluster = start();
    for (const name of ['n1', 'n2']) cluster.addNode(name);
    const term = { ...MATCH, topologyKey: 'kubernetes.io/hostname' };
    const podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
    expect(await place(cluster, 3, { affinity: { podAntiAffinity } })).toEqual(['', 'n1', 'n2']);
  });

  it('keeps pods with affinity together, also the first of them', async () => {
    const cluster = start();
    cluster.addNode('n1', ZONES.a);
    cluster.addNode('n2', ZONES.b);
    const term = { ...MATCH, topologyKey: 'zone' };
    const podAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
    const names = await place(cluster, 3, { affinity: { podAffinity } });
    expect(new Set(names).size).toBe(1);
    expect(names[0]).not.toBe('');
  });

  it('spreads pods over zones', async () => {
    const cluster = start();
    cluster.addNode('n1', ZONES.a);
    cluster.addNode('n2', { ...ZONES.b, allocatable: { cpu: '200m', memory: '4Gi', pods: '9' } });
    const constraint = {
      ...MATCH,
      maxSkew: 1,
      topologyKey: 'zone',
      whenUnsatisfiable: 'DoNotSchedule',
    };
    const spec = { topologySpreadConstraints: [constraint] };
    // Zone b holds two pods; a third one in zone a is allowed, a fourth is not.
    expect(await place(cluster, 6, spec)).toEqual(['', 'n1', 'n1', 'n1', 'n2', 'n2']);
  });

  it('serves the highest priority first', async () => {
    const cluster = start();
    const metadata = { name: 'high' };
    cluster.sim.create('scheduling.k8s.io/v1', 'priorityclasses', { metadata, value: 1_000 });
    const pod = (name: string, spec: JsonObject) =>
      cluster.sim.create('v1', 'pods', {
        metadata: { name, namespace: 'default' },
        spec: { ...(aTemplate(name, {}, { cpu: '2' })['spec'] as JsonObject), ...spec },
      });
    pod('first', {});
    await cluster.advance(1);
    pod('second', { priorityClassName: 'high' });
    await cluster.advance(1);
    cluster.addNode('n1');
    await cluster.advance(5);
    expect(cluster.pods().map(nodeNameOf)).toEqual(['', 'n1']);
  });

  it('chooses the same nodes for the same seed', async () => {
    const run = async () => {
      const cluster = start();
      for (const name of ['n1', 'n2', 'n3']) cluster.addNode(name);
      await place(cluster, 7);
      return cluster.pods().map((pod) => `${pod.metadata.name} ${nodeNameOf(pod)}`);
    };
    expect(await run()).toEqual(await run());
  });
});

describe('the places of a pod', () => {
  it('are the other nodes that would still have space after all pending pods', async () => {
    const cluster = start();
    for (const name of ['n1', 'n2', 'n3']) cluster.addNode(name);
    expect(await place(cluster, 3, { cpu: '1500m' })).toEqual(['n1', 'n2', 'n3']);
    const [pod] = cluster.pods();
    const { name } = pod!.metadata;
    const places = (withoutNodes: readonly string[] = []) =>
      cluster.sim.findPlaces({ namespace: 'default', name, withoutNodes });
    expect(places()).toEqual([]);
    for (const node of ['n4', 'n5']) cluster.addNode(node);
    await cluster.advance(1);
    expect(places()).toEqual(['n4', 'n5']);
    expect(places(['n4'])).toEqual(['n5']);
  });
});
