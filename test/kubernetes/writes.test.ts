// SPDX-License-Identifier: Apache-2.0
// Cases that the contract cannot test on every implementation: lost responses, races, wrong clocks, floods of events.
import { describe, expect, it, onTestFinished } from 'vitest';
import { KubernetesCluster } from '../../src/kubernetes/index.ts';
import type { PvescalerError } from '../../src/ports/errors.ts';
import { advanceUntilSettled } from '../../src/ports/fakes/advance-until-settled.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import { KubernetesSim } from '../../src/sim/kubernetes/index.ts';
import { SimTransport } from './sim-transport.ts';

function setUp() {
  const clock = new VirtualClock();
  const random = new SeededRandom(3);
  const sim = new KubernetesSim({ clock, random });
  const errors: PvescalerError[] = [];
  const connect = (own = clock, caPem?: string) => {
    const cluster = new KubernetesCluster({
      transport: new SimTransport(sim),
      server: 'http://sim.example/',
      caPem,
      clock: own,
      random,
      onError: (error) => errors.push(error),
    });
    onTestFinished(() => cluster.close());
    return cluster;
  };
  /** Advances the virtual clock until the work settles. */
  const advanceUntil = <T>(work: Promise<T>) => advanceUntilSettled(clock, work);
  return { clock, sim, errors, connect, advanceUntil, cluster: connect() };
}

function createNode(sim: KubernetesSim, body: { spec?: { taints: [] } } = {}) {
  const { metadata } = sim.create('v1', 'nodes', { metadata: { name: 'n1' }, ...body });
  return { name: metadata.name, uid: metadata.uid };
}

/** Runs a concurrent change once, between the read and the first write. */
function onFirstPatch(sim: KubernetesSim, changeNode: () => void): void {
  sim.onRequest = (line) => {
    if (!line.startsWith('PATCH')) return;
    sim.onRequest = undefined;
    changeNode();
  };
}

const LEASE_REQUEST = { name: 'reconcile', durationMs: 15_000 };

describe('KubernetesCluster leases', () => {
  it('expire after their duration even if the holder clock is years off', async () => {
    for (const offset of [-1, 1]) {
      const { clock, cluster, connect } = setUp();
      const wrong = new VirtualClock(clock.now() + offset * 1e11);
      const odd = connect(wrong);
      await odd.acquireLease({ ...LEASE_REQUEST, holder: 'odd' });
      const acquire = () => cluster.acquireLease({ ...LEASE_REQUEST, holder: 'right' });
      await expect(acquire()).rejects.toMatchObject({ code: 'LEASE_HELD' });
      await clock.advance(14_000);
      await expect(acquire()).rejects.toMatchObject({ code: 'LEASE_HELD' });
      await clock.advance(1_000);
      expect(await acquire()).toMatchObject({ holder: 'right', token: 2 });
    }
  });

  it('restart the expiry timer with every renewal', async () => {
    const { clock, cluster, connect } = setUp();
    const lease = await cluster.acquireLease({ ...LEASE_REQUEST, holder: 'a' });
    const other = connect();
    const acquire = () => other.acquireLease({ ...LEASE_REQUEST, holder: 'b' });
    await expect(acquire()).rejects.toMatchObject({ code: 'LEASE_HELD' });
    await clock.advance(10_000);
    await cluster.renewLease(lease, 15_000);
    await clock.advance(10_000);
    await expect(acquire()).rejects.toMatchObject({ code: 'LEASE_HELD' });
    await clock.advance(14_000);
    await expect(acquire()).rejects.toMatchObject({ code: 'LEASE_HELD' });
    await clock.advance(1_000);
    expect(await acquire()).toMatchObject({ holder: 'b' });
  });

  it('are acquired with a new token after a lost response', async () => {
    const { sim, cluster } = setUp();
    sim.create('v1', 'namespaces', { metadata: { name: 'pvescaler' } });
    sim.faults.add({ verb: 'POST', path: 'leases', fault: { kind: 'disconnect-after' } });
    const acquire = () => cluster.acquireLease({ ...LEASE_REQUEST, holder: 'a' });
    await expect(acquire()).rejects.toMatchObject({ code: 'KUBERNETES_UNREACHABLE' });
    expect(await acquire()).toMatchObject({ holder: 'a', token: 2 });
  });

  it('keep the unsettled time after a lost response', async () => {
    const { sim, cluster, connect } = setUp();
    const first = await cluster.acquireLease({ ...LEASE_REQUEST, holder: 'a' });
    await cluster.releaseLease(first, { unsettledMs: 20_000 });
    sim.faults.add({ verb: 'PUT', path: 'leases', fault: { kind: 'disconnect-after' } });
    const other = connect();
    const acquire = () => other.acquireLease({ ...LEASE_REQUEST, holder: 'b' });
    await expect(acquire()).rejects.toMatchObject({ code: 'KUBERNETES_UNREACHABLE' });
    expect(await acquire()).toMatchObject({ holder: 'b', token: 3, unsettledMs: 20_000 });
  });

  it('are renewed again after a lost response', async () => {
    const { sim, clock, cluster } = setUp();
    const lease = await cluster.acquireLease({ ...LEASE_REQUEST, holder: 'a' });
    sim.faults.add({ verb: 'PUT', path: 'leases', fault: { kind: 'disconnect-after' } });
    const renew = () => cluster.renewLease(lease, 15_000);
    await expect(renew()).rejects.toMatchObject({ code: 'KUBERNETES_UNREACHABLE' });
    await clock.advance(5_000);
    expect((await renew()).actUntil).toBe(clock.monotonic() + 15_000);
  });

  it('are not renewed by a holder that is delayed past the expiry', async () => {
    const { sim, cluster, advanceUntil } = setUp();
    const lease = await advanceUntil(cluster.acquireLease({ ...LEASE_REQUEST, holder: 'a' }));
    sim.faults.add({ verb: 'GET', path: 'leases', fault: { kind: 'hang' } });
    const writes = () => sim.requests.filter((line) => line.startsWith('PUT')).length;
    await expect(advanceUntil(cluster.renewLease(lease, 15_000))).rejects.toMatchObject({
      class: 'TimedOut',
    });
    await expect(advanceUntil(cluster.renewLease(lease, 15_000))).rejects.toMatchObject({
      code: 'LEASE_LOST',
    });
    expect(writes()).toBe(0);
  });

  it('are lost when the Lease object is deleted', async () => {
    const { sim, cluster } = setUp();
    const lease = await cluster.acquireLease({ ...LEASE_REQUEST, holder: 'a' });
    const name = 'pvescaler-reconcile';
    sim.remove('coordination.k8s.io/v1', 'leases', { namespace: 'pvescaler', name });
    await expect(cluster.renewLease(lease, 15_000)).rejects.toMatchObject({
      code: 'LEASE_LOST',
    });
  });

  it('report the missing permission to create the namespace', async () => {
    const { sim, cluster } = setUp();
    const fault = { kind: 'status', status: 403, reason: 'Forbidden' } as const;
    sim.faults.add({ verb: 'POST', path: '/api/v1/namespaces', fault });
    await expect(cluster.acquireLease({ ...LEASE_REQUEST, holder: 'a' })).rejects.toMatchObject({
      code: 'PERMISSION_MISSING',
    });
  });
});

describe('KubernetesCluster node writes', () => {
  it('are skipped when the node already matches', async () => {
    const { sim, cluster } = setUp();
    const node = createNode(sim);
    const change = {
      addTaints: [{ key: 'k', value: '', effect: 'NoSchedule' }],
      unschedulable: true,
    } as const;
    const declaration = { labels: { a: 'b' }, providerId: 'proxmox://lab/1' };
    for (const _again of [1, 2]) {
      await cluster.changeNode(node, change);
      await cluster.declareNode(node, declaration);
    }
    expect(sim.requests.filter((line) => line.startsWith('PATCH'))).toHaveLength(2);
  });

  it('declare a node by server-side apply as manager pvescaler', async () => {
    const { sim, cluster } = setUp();
    await cluster.declareNode(createNode(sim), { labels: { a: 'b' } });
    const [node] = sim.list('v1', 'nodes');
    expect(node?.metadata['managedFields']).toEqual([
      expect.objectContaining({ manager: 'pvescaler', operation: 'Apply' }),
    ]);
  });

  it('do not create a node that was deleted before the apply', async () => {
    const { sim, cluster, advanceUntil } = setUp();
    const node = createNode(sim);
    onFirstPatch(sim, () => sim.remove('v1', 'nodes', { name: 'n1' }));
    await expect(
      advanceUntil(cluster.declareNode(node, { labels: { a: 'b' } })),
    ).rejects.toMatchObject({
      code: 'NODE_NOT_FOUND',
    });
    expect(sim.list('v1', 'nodes')).toEqual([]);
  });

  it.each(['declared', 'changed'])(
    'leave a node that was recreated in between not %s',
    async (how) => {
      const { sim, cluster, advanceUntil } = setUp();
      const node = createNode(sim);
      onFirstPatch(sim, () => {
        sim.remove('v1', 'nodes', { name: 'n1' });
        sim.create('v1', 'nodes', { metadata: { name: 'n1' } });
      });
      const work: Promise<unknown> =
        how === 'declared'
          ? cluster.declareNode(node, { labels: { a: 'b' }, providerId: 'proxmox://lab/1' })
          : cluster.changeNode(node, { unschedulable: true });
      await expect(advanceUntil(work)).rejects.toMatchObject({ code: 'NODE_NOT_FOUND' });
      const [another] = sim.list('v1', 'nodes');
      expect(another?.metadata['labels']).toBeUndefined();
      expect(another?.['spec']).toBeUndefined();
    },
  );

  it('change nothing when another client sets a provider id in between', async () => {
    const { sim, cluster, advanceUntil } = setUp();
    const node = createNode(sim);
    onFirstPatch(sim, () => {
      sim.change('v1', 'nodes', { metadata: { name: 'n1' }, spec: { providerID: 'k3s://n1' } });
    });
    const declaration = { labels: { half: 'done' }, providerId: 'proxmox://lab/1' };
    await expect(advanceUntil(cluster.declareNode(node, declaration))).rejects.toMatchObject({
      code: 'PROVIDER_ID_SET',
      facts: { providerId: 'k3s://n1' },
    });
    expect(sim.list('v1', 'nodes')[0]?.metadata['labels']).toBeUndefined();
  });

  it('report the manager that took a label in between and apply the rest', async () => {
    const { sim, cluster } = setUp();
    const node = createNode(sim);
    onFirstPatch(sim, () => {
      sim.change('v1', 'nodes', { metadata: { name: 'n1', labels: { tier: 'theirs' } } });
    });
    const conflicts = await cluster.declareNode(node, { labels: { tier: 'ours', a: 'b' } });
    expect(conflicts).toEqual([{ kind: 'label', key: 'tier', manager: 'others' }]);
    expect(sim.list('v1', 'nodes')[0]?.metadata['labels']).toEqual({ tier: 'theirs', a: 'b' });
  });

  it('are not repeated after a lost response', async () => {
    const { sim, cluster } = setUp();
    const node = createNode(sim);
    const declare = () => cluster.declareNode(node, { labels: { a: 'b' } });
    sim.faults.add({ verb: 'PATCH', path: 'nodes', fault: { kind: 'disconnect-after' } });
    await expect(declare()).rejects.toMatchObject({ code: 'KUBERNETES_UNREACHABLE' });
    expect(await declare()).toEqual([]);
    expect(sim.requests.filter((line) => line.startsWith('PATCH'))).toHaveLength(1);
  });

  it('reject an invalid label', async () => {
    const { sim, cluster } = setUp();
    const node = createNode(sim);
    sim.faults.add({ verb: 'PATCH', fault: { kind: 'status', status: 422, reason: 'Invalid' } });
    await expect(cluster.declareNode(node, { labels: { a: 'b' } })).rejects.toMatchObject({
      code: 'REQUEST_INVALID',
    });
  });

  it('keep taints of other managers, also those added in between', async () => {
    const { sim, cluster, advanceUntil } = setUp();
    const taints = [{ key: 'other', effect: 'NoExecute', timeAdded: '2026-01-01T00:00:00Z' }];
    const node = createNode(sim);
    sim.change('v1', 'nodes', { metadata: { name: 'n1' }, spec: { taints } });
    let isFirst = true;
    sim.onRequest = (line) => {
      if (!line.startsWith('PATCH') || !isFirst) return;
      isFirst = false;
      const more = [...taints, { key: 'late', effect: 'NoSchedule' }];
      sim.change('v1', 'nodes', { metadata: { name: 'n1' }, spec: { taints: more } });
    };
    const ours = { key: 'k', value: 'v', effect: 'NoSchedule' } as const;
    await advanceUntil(cluster.changeNode(node, { addTaints: [ours] }));
    expect(sim.list('v1', 'nodes')[0]?.['spec']).toEqual({
      taints: [...taints, { key: 'late', effect: 'NoSchedule' }, ours],
    });
  });

  it('fail when another client keeps changing the node', async () => {
    const { sim, cluster, advanceUntil } = setUp();
    const node = createNode(sim);
    let count = 0;
    sim.onRequest = (line) => {
      if (!line.startsWith('PATCH')) return;
      count += 1;
      sim.change('v1', 'nodes', { metadata: { name: 'n1', labels: { count: String(count) } } });
    };
    const addTaints = [{ key: 'k', value: '', effect: 'NoSchedule' }] as const;
    await expect(advanceUntil(cluster.changeNode(node, { addTaints }))).rejects.toMatchObject({
      code: 'NODE_CHANGED',
    });
    expect(count).toBeLessThan(20);
  });
});

describe('KubernetesCluster evictions', () => {
  function createPod(sim: KubernetesSim) {
    const { metadata } = sim.create('v1', 'pods', {
      metadata: { name: 'p1', namespace: 'default', labels: { app: 'p' } },
      spec: { nodeName: 'n1' },
    });
    // A pending pod is evicted whatever its budget.
    const conditions = [{ type: 'Ready', status: 'True' }];
    const status = { phase: 'Running', conditions };
    sim.change('v1', 'pods', { metadata: { name: 'p1', namespace: 'default' }, status });
    return { namespace: 'default', name: 'p1', uid: metadata.uid };
  }

  it('distinguish an overloaded API server from a disruption budget', async () => {
    const { sim, cluster } = setUp();
    const pod = createPod(sim);
    const fault = { kind: 'status', status: 429, reason: 'TooManyRequests' } as const;
    sim.faults.add({ path: 'eviction', fault });
    await expect(cluster.evict(pod)).rejects.toMatchObject({
      code: 'KUBERNETES_UNREACHABLE',
    });
    expect(await cluster.evict(pod)).toEqual({ outcome: 'evicted' });
  });

  it.each([
    [0, 'blocked'],
    [2, 'evicted'],
  ])('with a budget of %i more disruptions are %s', async (disruptionsAllowed, outcome) => {
    const { sim, cluster } = setUp();
    const pod = createPod(sim);
    const metadata = { name: 'one', namespace: 'default' };
    const spec = { selector: { matchLabels: { app: 'p' } } };
    sim.create('policy/v1', 'poddisruptionbudgets', { metadata, spec });
    const status = { observedGeneration: 1, disruptionsAllowed };
    sim.change('policy/v1', 'poddisruptionbudgets', { metadata, status });
    expect(await cluster.evict(pod)).toMatchObject({ outcome });
  });

  it('are blocked when a pod has two disruption budgets', async () => {
    const { sim, cluster } = setUp();
    const pod = createPod(sim);
    for (const name of ['one', 'two']) {
      sim.create('policy/v1', 'poddisruptionbudgets', {
        metadata: { name, namespace: 'default' },
        spec: { selector: { matchLabels: { app: 'p' } } },
      });
    }
    expect(await cluster.evict(pod)).toMatchObject({
      outcome: 'blocked',
      reason: expect.stringContaining('more than one'),
    });
  });
});

describe('KubernetesCluster bootstrap tokens', () => {
  const order = {
    machine: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
    description: 'd',
    lifetimeMs: 60_000,
    groups: ['system:bootstrappers:kubeadm:default-node-token'],
    usages: ['authentication'],
  } as const;

  it('use another id when one already exists', async () => {
    const { sim, cluster } = setUp();
    const fault = { kind: 'status', status: 409, reason: 'AlreadyExists' } as const;
    sim.faults.add({ path: 'secrets', fault, times: 2 });
    const { token } = await cluster.createBootstrapToken(order);
    expect(sim.list('v1', 'secrets').map(({ metadata }) => metadata.name)).toEqual([
      `bootstrap-token-${token.slice(0, 6)}`,
    ]);
  });

  it('are deleted by another process that knows only the machine', async () => {
    const { sim, cluster, connect } = setUp();
    await cluster.createBootstrapToken(order);
    await connect().createBootstrapToken(order);
    const labels = {
      'app.kubernetes.io/managed-by': 'pvescaler',
      'pvescaler.dev/machine': order.machine,
    };
    expect(sim.list('v1', 'secrets').map(({ metadata }) => metadata.labels)).toEqual([
      labels,
      labels,
    ]);
    await connect().deleteBootstrapTokens(order.machine);
    expect(sim.list('v1', 'secrets')).toEqual([]);
  });

  it.each([
    [403, undefined],
    [500, { facts: { httpStatus: 500 } }],
  ])('stay after a refused deletion with %i', async (status, error) => {
    const { sim, cluster } = setUp();
    await cluster.createBootstrapToken(order);
    const fault = { kind: 'status', status, reason: 'X' } as const;
    sim.faults.add({ path: 'secrets/bootstrap-token-', fault });
    const deleted = cluster.deleteBootstrapTokens(order.machine);
    if (error === undefined) await deleted;
    else await expect(deleted).rejects.toMatchObject(error);
    expect(sim.list('v1', 'secrets')).toHaveLength(1);
  });

  it('do not outlive the maximum by the server clock when the local clock is ahead', async () => {
    const { clock, connect } = setUp();
    const ahead = connect(new VirtualClock(clock.now() + 4 * 60_000));
    const { expiresAt } = await ahead.createBootstrapToken({ ...order, lifetimeMs: 3_600_000 });
    expect(expiresAt - clock.now()).toBeLessThanOrEqual(3_600_000);
    expect(expiresAt - clock.now()).toBeGreaterThan(50 * 60_000);
  });

  it('are rejected with invalid groups, usages or lifetime', async () => {
    const { cluster } = setUp();
    for (const wrong of [{ groups: ['system:masters'] }, { usages: [] }, { lifetimeMs: 999 }]) {
      await expect(cluster.createBootstrapToken({ ...order, ...wrong })).rejects.toMatchObject({
        code: 'REQUEST_INVALID',
      });
    }
  });

  it('do not appear in error messages', async () => {
    const { sim, cluster } = setUp();
    sim.faults.add({ path: 'secrets', fault: { kind: 'disconnect-after' } });
    const failure = await cluster.createBootstrapToken(order).catch((error: Error) => error);
    const [secret] = sim.list('v1', 'secrets');
    const data = secret?.['data'] as Record<string, string>;
    const hidden = Buffer.from(data['token-secret'] ?? '', 'base64').toString('utf8');
    expect(hidden).toHaveLength(16);
    expect(JSON.stringify(failure, Object.getOwnPropertyNames(failure))).not.toContain(hidden);
  });
});

describe('the CA for joining nodes', () => {
  const CONFIG_MAP = { name: 'kube-root-ca.crt', namespace: 'kube-system' };

  it('is read anew for each call and preferred to the CA of the kubeconfig', async () => {
    const { sim, clock, connect } = setUp();
    const cluster = connect(clock, 'stale');
    const map = { metadata: CONFIG_MAP, data: { 'ca.crt': 'one' } };
    sim.create('v1', 'configmaps', map);
    expect(await cluster.serverCa()).toBe('one');
    sim.change('v1', 'configmaps', { ...map, data: { 'ca.crt': 'two' } });
    expect(await cluster.serverCa()).toBe('two');
  });

  it.each([403, 404, 500])('is that of the kubeconfig after a %i, except 500', async (status) => {
    const { sim, clock, connect } = setUp();
    sim.faults.add({ path: 'configmaps', fault: { kind: 'status', status, reason: 'X' } });
    const ca = connect(clock, 'from kubeconfig').serverCa();
    if (status === 500) await expect(ca).rejects.toMatchObject({ facts: { httpStatus: 500 } });
    else expect(await ca).toBe('from kubeconfig');
  });
});

describe('KubernetesCluster events', () => {
  const regarding = { kind: 'Node', name: 'n1' } as const;
  const event = { regarding, type: 'Normal', reason: 'Made', message: 'made' } as const;

  it('count repetitions and start a new series after ten minutes', async () => {
    const { sim, clock, cluster } = setUp();
    for (let index = 0; index < 3; index += 1) await cluster.emit(event);
    await cluster.emit({ ...event, message: 'other' });
    const list = () => sim.list('events.k8s.io/v1', 'events');
    expect(list()).toHaveLength(2);
    expect(list().map((one) => one['series'])).toContainEqual({
      count: 3,
      lastObservedTime: expect.stringMatching(/^\d{4}-.*\.\d{6}Z$/),
    });
    await clock.advance(700_000);
    await cluster.emit(event);
    expect(list()).toHaveLength(3);
  });

  it('are created again when the counted Event was deleted', async () => {
    const { sim, cluster } = setUp();
    await cluster.emit(event);
    const [first] = sim.list('events.k8s.io/v1', 'events');
    const { name = '' } = first?.metadata ?? {};
    sim.remove('events.k8s.io/v1', 'events', { namespace: 'default', name });
    await cluster.emit(event);
    expect(sim.list('events.k8s.io/v1', 'events')).toHaveLength(1);
  });

  it('are rate limited', async () => {
    const { sim, cluster } = setUp();
    for (let index = 0; index < 200; index += 1) {
      await cluster.emit({ ...event, message: `number ${index}` });
    }
    expect(sim.list('events.k8s.io/v1', 'events').length).toBeLessThan(40);
  });

  it('do not throw when the API server rejects or does not respond', async () => {
    const { sim, cluster, advanceUntil, errors } = setUp();
    sim.faults.add({ path: 'events', fault: { kind: 'status', status: 403 } });
    await advanceUntil(cluster.emit(event));
    sim.faults.add({ path: 'events', fault: { kind: 'hang' } });
    await advanceUntil(cluster.emit({ ...event, message: 'second' }));
    expect(errors.map(({ code }) => code)).toEqual(['PERMISSION_MISSING', 'REQUEST_TIMED_OUT']);
  });
});
