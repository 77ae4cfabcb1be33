// SPDX-License-Identifier: Apache-2.0
// The expected texts are those of kube-apiserver 1.36 (pkg/registry/core/pod/storage/eviction.go).
import { describe, expect, it, onTestFinished } from 'vitest';
import { aWorkload, type SimCluster, startSimCluster } from '../testing/sim-cluster.ts';
import type { JsonObject } from './objects.ts';

const VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget.";

async function start(replicas = 3) {
  const cluster = startSimCluster();
  onTestFinished(() => cluster.stop());
  for (const name of ['n1', 'n2']) cluster.addNode(name);
  cluster.sim.create('apps/v1', 'replicasets', aWorkload('web', { replicas }));
  await cluster.advance(10);
  return cluster;
}

function addBudget({ sim }: SimCluster, name: string, spec: JsonObject): void {
  const selector = { matchLabels: { app: 'web' } };
  const metadata = { name, namespace: 'default' };
  sim.create('policy/v1', 'poddisruptionbudgets', { metadata, spec: { selector, ...spec } });
}

function evict(cluster: SimCluster, which: number | string, deleteOptions: JsonObject = {}) {
  const name = typeof which === 'string' ? which : cluster.pods()[which]!.metadata.name;
  const path = `/api/v1/namespaces/default/pods/${name}/eviction`;
  return cluster.call('POST', path, { metadata: { name, namespace: 'default' }, deleteOptions });
}

const causeOf = ({ body }: { body: JsonObject }) =>
  (body['details'] as { causes: [JsonObject] }).causes[0];

describe('an eviction', () => {
  it('terminates the pod within its grace period and records why', async () => {
    const cluster = await start();
    expect((await evict(cluster, 0)).status).toBe(201);
    const [pod] = cluster.pods();
    const graceMs = Date.parse(pod?.metadata.deletionTimestamp ?? '') - cluster.clock.now();
    expect(graceMs).toBeGreaterThan(28_000);
    expect(pod?.['status']).toMatchObject({
      conditions: expect.arrayContaining([
        expect.objectContaining({ type: 'DisruptionTarget', reason: 'EvictionByEvictionAPI' }),
      ]),
    });
  });

  it('takes one disruption from the budget; the next one is refused with the numbers', async () => {
    const cluster = await start();
    addBudget(cluster, 'pdb', { minAvailable: 2 });
    await cluster.advance(1);
    expect((await evict(cluster, 0)).status).toBe(201);
    const { name } = cluster.pods()[1]!.metadata;
    const refused = await evict(cluster, name);
    expect(refused).toMatchObject({
      status: 429,
      body: { reason: 'TooManyRequests', message: VIOLATION },
    });
    expect(causeOf(refused)).toEqual({
      reason: 'DisruptionBudget',
      message: 'The disruption budget pdb does not allow evicting pods currently',
    });
    await cluster.advance(1);
    expect(causeOf(await evict(cluster, name))).toEqual({
      reason: 'DisruptionBudget',
      message: 'The disruption budget pdb needs 2 healthy pods and has 2 currently',
    });
  });

  it('is allowed again when the replacement is ready', async () => {
    const cluster = await start();
    addBudget(cluster, 'pdb', { maxUnavailable: 1 });
    await cluster.advance(1);
    const names = () => cluster.pods().map(({ metadata }) => metadata.name);
    const before = names();
    expect((await evict(cluster, 0)).status).toBe(201);
    expect((await evict(cluster, 1)).status).toBe(429);
    await cluster.advance(10);
    expect(names()).toHaveLength(3);
    expect(names()).not.toEqual(before);
    expect((await evict(cluster, 1)).status).toBe(201);
  });

  it('is refused while the server has not processed a new budget', async () => {
    const cluster = await start();
    addBudget(cluster, 'pdb', { minAvailable: 0 });
    expect(causeOf(await evict(cluster, 0))).toEqual({
      reason: 'DisruptionBudget',
      message: 'The disruption budget pdb is still being processed by the server.',
    });
  });

  it('fails with 500 for a pod with two budgets', async () => {
    const cluster = await start();
    for (const name of ['one', 'two']) addBudget(cluster, name, { minAvailable: 0 });
    await cluster.advance(1);
    expect(await evict(cluster, 0)).toMatchObject({
      status: 500,
      body: {
        message:
          'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
      },
    });
  });

  it('as a dry run says what would happen and changes nothing', async () => {
    const cluster = await start();
    addBudget(cluster, 'pdb', { minAvailable: 2 });
    await cluster.advance(1);
    for (const index of [0, 1, 2]) {
      expect((await evict(cluster, index, { dryRun: ['All'] })).status).toBe(201);
    }
    expect(cluster.pods().map(({ metadata }) => metadata.deletionTimestamp)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    const [budget] = cluster.sim.list('policy/v1', 'poddisruptionbudgets');
    expect(budget?.['status']).toMatchObject({ disruptionsAllowed: 1 });
  });

  it('of a pod that does not run ignores its budget', async () => {
    const cluster = startSimCluster();
    onTestFinished(() => cluster.stop());
    cluster.sim.create('apps/v1', 'replicasets', aWorkload('web'));
    addBudget(cluster, 'pdb', { maxUnavailable: 0 });
    await cluster.advance(2);
    expect((await evict(cluster, 0)).status).toBe(201);
  });

  it('with the uid of another pod is a conflict', async () => {
    const cluster = await start();
    const refused = await evict(cluster, 0, { preconditions: { uid: 'other' } });
    expect(refused).toMatchObject({ status: 409, body: { reason: 'Conflict' } });
    expect(cluster.pods()[0]?.metadata.deletionTimestamp).toBeUndefined();
  });
});

describe('a disruption budget', () => {
  it.each([
    [{ maxUnavailable: '50%' }, { desiredHealthy: 1, disruptionsAllowed: 2, expectedPods: 3 }],
    [{ minAvailable: '50%' }, { desiredHealthy: 2, disruptionsAllowed: 1, expectedPods: 3 }],
    [{ minAvailable: 5 }, { desiredHealthy: 5, disruptionsAllowed: 0, expectedPods: 3 }],
  ])('with %j has the status %j', async (spec, status) => {
    const cluster = await start();
    addBudget(cluster, 'pdb', spec);
    await cluster.advance(1);
    const [budget] = cluster.sim.list('policy/v1', 'poddisruptionbudgets');
    expect(budget?.['status']).toMatchObject({ currentHealthy: 3, ...status });
  });
});
