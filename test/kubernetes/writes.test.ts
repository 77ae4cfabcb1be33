// SPDX-License-Identifier: Apache-2.0
// What the contract cannot ask of every implementation: lost answers, races, lies about the time, floods.
import { describe, expect, it, onTestFinished } from 'vitest';
import { KubernetesCluster } from '../../src/kubernetes/index.ts';
import type { PvescalerError } from '../../src/ports/errors.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { untilSettled } from '../../src/ports/fakes/until-settled.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import { KubernetesSim } from '../../src/sim/kubernetes/index.ts';
import { SimTransport } from './sim-transport.ts';

function scene() {
  const clock = new VirtualClock();
  const random = new SeededRandom(3);
  const sim = new KubernetesSim({ clock, random });
  const troubles: PvescalerError[] = [];
  const connect = (own = clock) => {
    const cluster = new KubernetesCluster({
      transport: new SimTransport(sim),
      server: 'http://sim.example/',
      caPem: undefined,
      clock: own,
      random,
      onTrouble: (error) => troubles.push(error),
    });
    onTestFinished(() => cluster.close());
    return cluster;
  };
  /** For what waits for time to pass. */
  const later = <T>(work: Promise<T>) => untilSettled(clock, work);
  return { clock, sim, troubles, connect, later, cluster: connect() };
}

function aNode(sim: KubernetesSim, body: { spec?: { taints: [] } } = {}) {
  const { metadata } = sim.create('v1', 'nodes', { metadata: { name: 'n1' }, ...body });
  return { name: metadata.name, uid: metadata.uid };
}

/** Somebody else comes between reading and writing, once. */
function onFirstPatch(sim: KubernetesSim, meddle: () => void): void {
  sim.onRequest = (line) => {
    if (!line.startsWith('PATCH')) return;
    sim.onRequest = undefined;
    meddle();
  };
}

const REQUEST = { name: 'reconcile', durationMs: 15_000 };

describe('leases', () => {
  it('do not believe a holder whose clock is years ahead or behind', async () => {
    for (const offset of [-1, 1]) {
      const { clock, cluster, connect } = scene();
      const wrong = new VirtualClock(clock.now() + offset * 1e11);
      const odd = connect(wrong);
      await odd.acquireLease({ ...REQUEST, holder: 'odd' });
      const ask = () => cluster.acquireLease({ ...REQUEST, holder: 'right' });
      await expect(ask()).rejects.toMatchObject({ code: 'LEASE_HELD' });
      await clock.advance(14_000);
      await expect(ask()).rejects.toMatchObject({ code: 'LEASE_HELD' });
      await clock.advance(1_000);
      expect(await ask()).toMatchObject({ holder: 'right', token: 2 });
    }
  });

  it('begin to be watched anew whenever they change', async () => {
    const { clock, cluster, connect } = scene();
    const lease = await cluster.acquireLease({ ...REQUEST, holder: 'a' });
    const other = connect();
    const ask = () => other.acquireLease({ ...REQUEST, holder: 'b' });
    await expect(ask()).rejects.toMatchObject({ code: 'LEASE_HELD' });
    await clock.advance(10_000);
    await cluster.renewLease(lease, 15_000);
    await clock.advance(10_000);
    await expect(ask()).rejects.toMatchObject({ code: 'LEASE_HELD' });
    await clock.advance(14_000);
    await expect(ask()).rejects.toMatchObject({ code: 'LEASE_HELD' });
    await clock.advance(1_000);
    expect(await ask()).toMatchObject({ holder: 'b' });
  });

  it('are had by who lost the answer, with a new token', async () => {
    const { sim, cluster } = scene();
    sim.create('v1', 'namespaces', { metadata: { name: 'pvescaler' } });
    sim.faults.add({ verb: 'POST', path: 'leases', fault: { kind: 'cut-after' } });
    const ask = () => cluster.acquireLease({ ...REQUEST, holder: 'a' });
    await expect(ask()).rejects.toMatchObject({ code: 'KUBERNETES_UNREACHABLE' });
    expect(await ask()).toMatchObject({ holder: 'a', token: 2 });
  });

  it('are known to be unsettled by who lost the answer, too', async () => {
    const { sim, cluster, connect } = scene();
    const first = await cluster.acquireLease({ ...REQUEST, holder: 'a' });
    await cluster.releaseLease(first, { unsettledMs: 20_000 });
    sim.faults.add({ verb: 'PUT', path: 'leases', fault: { kind: 'cut-after' } });
    const other = connect();
    const ask = () => other.acquireLease({ ...REQUEST, holder: 'b' });
    await expect(ask()).rejects.toMatchObject({ code: 'KUBERNETES_UNREACHABLE' });
    expect(await ask()).toMatchObject({ holder: 'b', token: 3, unsettledMs: 20_000 });
  });

  it('are renewed again after a lost answer', async () => {
    const { sim, clock, cluster } = scene();
    const lease = await cluster.acquireLease({ ...REQUEST, holder: 'a' });
    sim.faults.add({ verb: 'PUT', path: 'leases', fault: { kind: 'cut-after' } });
    const renew = () => cluster.renewLease(lease, 15_000);
    await expect(renew()).rejects.toMatchObject({ code: 'KUBERNETES_UNREACHABLE' });
    await clock.advance(5_000);
    expect((await renew()).actUntil).toBe(clock.monotonic() + 15_000);
  });

  it('are not renewed by a holder that is held up until they expired', async () => {
    const { sim, cluster, later } = scene();
    const lease = await later(cluster.acquireLease({ ...REQUEST, holder: 'a' }));
    sim.faults.add({ verb: 'GET', path: 'leases', fault: { kind: 'hang' } });
    const writes = () => sim.requests.filter((line) => line.startsWith('PUT')).length;
    await expect(later(cluster.renewLease(lease, 15_000))).rejects.toMatchObject({
      class: 'TimedOut',
    });
    await expect(later(cluster.renewLease(lease, 15_000))).rejects.toMatchObject({
      code: 'LEASE_LOST',
    });
    expect(writes()).toBe(0);
  });

  it('are lost when somebody removes the object', async () => {
    const { sim, cluster } = scene();
    const lease = await cluster.acquireLease({ ...REQUEST, holder: 'a' });
    const name = 'pvescaler-reconcile';
    sim.remove('coordination.k8s.io/v1', 'leases', { namespace: 'pvescaler', name });
    await expect(cluster.renewLease(lease, 15_000)).rejects.toMatchObject({
      code: 'LEASE_LOST',
    });
  });

  it('say what is missing where the namespace cannot be made', async () => {
    const { sim, cluster } = scene();
    const fault = { kind: 'status', status: 403, reason: 'Forbidden' } as const;
    sim.faults.add({ verb: 'POST', path: '/api/v1/namespaces', fault });
    await expect(cluster.acquireLease({ ...REQUEST, holder: 'a' })).rejects.toMatchObject({
      code: 'PERMISSION_MISSING',
    });
  });
});

describe('nodes', () => {
  it('are not written to when they are as wanted', async () => {
    const { sim, cluster } = scene();
    const node = aNode(sim);
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

  it('are declared by apply, under our name', async () => {
    const { sim, cluster } = scene();
    await cluster.declareNode(aNode(sim), { labels: { a: 'b' } });
    const [node] = sim.list('v1', 'nodes');
    expect(node?.metadata['managedFields']).toEqual([
      expect.objectContaining({ manager: 'pvescaler', operation: 'Apply' }),
    ]);
  });

  it('are not made by a declaration that comes too late', async () => {
    const { sim, cluster, later } = scene();
    const node = aNode(sim);
    onFirstPatch(sim, () => sim.remove('v1', 'nodes', { name: 'n1' }));
    await expect(later(cluster.declareNode(node, { labels: { a: 'b' } }))).rejects.toMatchObject({
      code: 'NODE_NOT_FOUND',
    });
    expect(sim.list('v1', 'nodes')).toEqual([]);
  });

  it.each(['declared', 'changed'])('are not %s when made anew in between', async (how) => {
    const { sim, cluster, later } = scene();
    const node = aNode(sim);
    onFirstPatch(sim, () => {
      sim.remove('v1', 'nodes', { name: 'n1' });
      sim.create('v1', 'nodes', { metadata: { name: 'n1' } });
    });
    const work: Promise<unknown> =
      how === 'declared'
        ? cluster.declareNode(node, { labels: { a: 'b' }, providerId: 'proxmox://lab/1' })
        : cluster.changeNode(node, { unschedulable: true });
    await expect(later(work)).rejects.toMatchObject({ code: 'NODE_NOT_FOUND' });
    const [another] = sim.list('v1', 'nodes');
    expect(another?.metadata['labels']).toBeUndefined();
    expect(another?.['spec']).toBeUndefined();
  });

  it('are left as they are when somebody gives them a provider id in between', async () => {
    const { sim, cluster, later } = scene();
    const node = aNode(sim);
    onFirstPatch(sim, () => {
      sim.change('v1', 'nodes', { metadata: { name: 'n1' }, spec: { providerID: 'k3s://n1' } });
    });
    const declaration = { labels: { half: 'done' }, providerId: 'proxmox://lab/1' };
    await expect(later(cluster.declareNode(node, declaration))).rejects.toMatchObject({
      code: 'PROVIDER_ID_SET',
      facts: { providerId: 'k3s://n1' },
    });
    expect(sim.list('v1', 'nodes')[0]?.metadata['labels']).toBeUndefined();
  });

  it('say who holds a label, and are asked twice for one that was taken in between', async () => {
    const { sim, cluster } = scene();
    const node = aNode(sim);
    onFirstPatch(sim, () => {
      sim.change('v1', 'nodes', { metadata: { name: 'n1', labels: { tier: 'theirs' } } });
    });
    const contested = await cluster.declareNode(node, { labels: { tier: 'ours', a: 'b' } });
    expect(contested).toEqual([{ kind: 'label', key: 'tier', holder: 'others' }]);
    expect(sim.list('v1', 'nodes')[0]?.metadata['labels']).toEqual({ tier: 'theirs', a: 'b' });
  });

  it('are declared again after a lost answer', async () => {
    const { sim, cluster } = scene();
    const node = aNode(sim);
    const declare = () => cluster.declareNode(node, { labels: { a: 'b' } });
    sim.faults.add({ verb: 'PATCH', path: 'nodes', fault: { kind: 'cut-after' } });
    await expect(declare()).rejects.toMatchObject({ code: 'KUBERNETES_UNREACHABLE' });
    expect(await declare()).toEqual([]);
    expect(sim.requests.filter((line) => line.startsWith('PATCH'))).toHaveLength(1);
  });

  it('are not declared with what is no label', async () => {
    const { sim, cluster } = scene();
    const node = aNode(sim);
    sim.faults.add({ verb: 'PATCH', fault: { kind: 'status', status: 422, reason: 'Invalid' } });
    await expect(cluster.declareNode(node, { labels: { a: 'b' } })).rejects.toMatchObject({
      code: 'REQUEST_INVALID',
    });
  });

  it('keep what others know of their taints, and what they add in between', async () => {
    const { sim, cluster, later } = scene();
    const taints = [{ key: 'other', effect: 'NoExecute', timeAdded: '2026-01-01T00:00:00Z' }];
    const node = aNode(sim);
    sim.change('v1', 'nodes', { metadata: { name: 'n1' }, spec: { taints } });
    let isFirst = true;
    sim.onRequest = (line) => {
      if (!line.startsWith('PATCH') || !isFirst) return;
      isFirst = false;
      const more = [...taints, { key: 'late', effect: 'NoSchedule' }];
      sim.change('v1', 'nodes', { metadata: { name: 'n1' }, spec: { taints: more } });
    };
    const ours = { key: 'k', value: 'v', effect: 'NoSchedule' } as const;
    await later(cluster.changeNode(node, { addTaints: [ours] }));
    expect(sim.list('v1', 'nodes')[0]?.['spec']).toEqual({
      taints: [...taints, { key: 'late', effect: 'NoSchedule' }, ours],
    });
  });

  it('are given up when others never stop changing them', async () => {
    const { sim, cluster, later } = scene();
    const node = aNode(sim);
    let count = 0;
    sim.onRequest = (line) => {
      if (!line.startsWith('PATCH')) return;
      count += 1;
      sim.change('v1', 'nodes', { metadata: { name: 'n1', labels: { count: String(count) } } });
    };
    const addTaints = [{ key: 'k', value: '', effect: 'NoSchedule' }] as const;
    await expect(later(cluster.changeNode(node, { addTaints }))).rejects.toMatchObject({
      code: 'NODE_CHANGED',
    });
    expect(count).toBeLessThan(20);
  });
});

describe('evictions', () => {
  function aPod(sim: KubernetesSim) {
    const { metadata } = sim.create('v1', 'pods', {
      metadata: { name: 'p1', namespace: 'default', labels: { app: 'p' } },
      spec: { nodeName: 'n1' },
    });
    return { namespace: 'default', name: 'p1', uid: metadata.uid };
  }

  it('tell an API server with too much to do from a budget', async () => {
    const { sim, cluster } = scene();
    const pod = aPod(sim);
    const fault = { kind: 'status', status: 429, reason: 'TooManyRequests' } as const;
    sim.faults.add({ path: 'eviction', fault });
    await expect(cluster.evict(pod)).rejects.toMatchObject({
      code: 'KUBERNETES_UNREACHABLE',
    });
    expect(await cluster.evict(pod)).toEqual({ outcome: 'evicted' });
  });

  it('take two budgets for one pod as a no', async () => {
    const { sim, cluster } = scene();
    const pod = aPod(sim);
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

describe('bootstrap tokens', () => {
  const order = {
    description: 'd',
    lifetimeMs: 60_000,
    groups: ['system:bootstrappers:kubeadm:default-node-token'],
    usages: ['authentication'],
  } as const;

  it('try another id where one is taken', async () => {
    const { sim, cluster } = scene();
    const fault = { kind: 'status', status: 409, reason: 'AlreadyExists' } as const;
    sim.faults.add({ path: 'secrets', fault, times: 2 });
    const { token } = await cluster.createBootstrapToken(order);
    expect(sim.list('v1', 'secrets').map(({ metadata }) => metadata.name)).toEqual([
      `bootstrap-token-${token.slice(0, 6)}`,
    ]);
  });

  it('last no longer than allowed by the server’s clock, where ours is ahead', async () => {
    const { clock, connect } = scene();
    const ahead = connect(new VirtualClock(clock.now() + 4 * 60_000));
    const { expiresAt } = await ahead.createBootstrapToken({ ...order, lifetimeMs: 3_600_000 });
    expect(expiresAt - clock.now()).toBeLessThanOrEqual(3_600_000);
    expect(expiresAt - clock.now()).toBeGreaterThan(50 * 60_000);
  });

  it('are refused with groups or usages that make no sense', async () => {
    const { cluster } = scene();
    for (const wrong of [{ groups: ['system:masters'] }, { usages: [] }, { lifetimeMs: 999 }]) {
      await expect(cluster.createBootstrapToken({ ...order, ...wrong })).rejects.toMatchObject({
        code: 'REQUEST_INVALID',
      });
    }
  });

  it('never show their secret in an error', async () => {
    const { sim, cluster } = scene();
    sim.faults.add({ path: 'secrets', fault: { kind: 'cut-after' } });
    const failure = await cluster.createBootstrapToken(order).catch((error: Error) => error);
    const [secret] = sim.list('v1', 'secrets');
    const data = secret?.['data'] as Record<string, string>;
    const hidden = Buffer.from(data['token-secret'] ?? '', 'base64').toString('utf8');
    expect(hidden).toHaveLength(16);
    expect(JSON.stringify(failure, Object.getOwnPropertyNames(failure))).not.toContain(hidden);
  });
});

describe('events', () => {
  const about = { kind: 'Node', name: 'n1' } as const;
  const event = { about, type: 'Normal', reason: 'Made', message: 'made' } as const;

  it('count what repeats, and begin anew after a while', async () => {
    const { sim, clock, cluster } = scene();
    for (let turn = 0; turn < 3; turn += 1) await cluster.emit(event);
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

  it('are made again when the counted one is gone', async () => {
    const { sim, cluster } = scene();
    await cluster.emit(event);
    const [first] = sim.list('events.k8s.io/v1', 'events');
    const { name = '' } = first?.metadata ?? {};
    sim.remove('events.k8s.io/v1', 'events', { namespace: 'default', name });
    await cluster.emit(event);
    expect(sim.list('events.k8s.io/v1', 'events')).toHaveLength(1);
  });

  it('are dropped rather than flood the API server', async () => {
    const { sim, cluster } = scene();
    for (let turn = 0; turn < 200; turn += 1) {
      await cluster.emit({ ...event, message: `number ${turn}` });
    }
    expect(sim.list('events.k8s.io/v1', 'events').length).toBeLessThan(40);
  });

  it('do no harm when they are refused or nobody answers', async () => {
    const { sim, cluster, later, troubles } = scene();
    sim.faults.add({ path: 'events', fault: { kind: 'status', status: 403 } });
    await later(cluster.emit(event));
    sim.faults.add({ path: 'events', fault: { kind: 'hang' } });
    await later(cluster.emit({ ...event, message: 'second' }));
    expect(troubles.map(({ code }) => code)).toEqual(['PERMISSION_MISSING', 'REQUEST_TIMED_OUT']);
  });
});
