// SPDX-License-Identifier: Apache-2.0
// The watch cache against a faulty API server, on virtual time.
import { describe, expect, it, onTestFinished } from 'vitest';
import { KubernetesCluster, type KubernetesClusterOptions } from '../../src/kubernetes/index.ts';
import type { PvescalerError } from '../../src/ports/errors.ts';
import { ScriptedTransport } from '../../src/ports/fakes/scripted-transport.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { Transport } from '../../src/ports/transport.ts';
import { KubernetesSim } from '../../src/sim/kubernetes/index.ts';
import { SimTransport } from './sim-transport.ts';

const NODES = '/api/v1/nodes';

async function setUp(
  options: Partial<KubernetesClusterOptions> = {},
  nodes: readonly string[] = [],
) {
  const clock = new VirtualClock();
  const random = new SeededRandom(5);
  const sim = new KubernetesSim({ clock, random });
  for (const name of nodes) sim.create('v1', 'nodes', { metadata: { name } });
  const errors: PvescalerError[] = [];
  const simulated = new SimTransport(sim);
  const lists: string[] = [];
  const transport: Transport = {
    request: (request) => {
      const { pathname, searchParams } = new URL(request.url);
      // One object is read for the newest version.
      if (!searchParams.has('watch') && searchParams.get('limit') !== '1') lists.push(pathname);
      return simulated.request(request);
    },
    close: () => simulated.close(),
  };
  const open = () => {
    const cluster = new KubernetesCluster({
      transport,
      server: 'http://sim.example',
      caPem: undefined,
      clock,
      random,
      watch: 'nodes',
      onError: (error) => errors.push(error),
      ...options,
    });
    onTestFinished(() => cluster.close());
    return cluster;
  };
  return { clock, sim, errors, lists, open };
}

async function setUpSynced(options?: Partial<KubernetesClusterOptions>, nodes?: readonly string[]) {
  const fixture = await setUp(options, nodes);
  const cluster = fixture.open();
  await fixture.clock.advance(0);
  const names = async () => (await cluster.view()).nodes.map(({ name }) => name);
  const count = (line: string) => fixture.sim.requests.filter((one) => one === line).length;
  return { ...fixture, cluster, names, count };
}

describe('changes since a revision', () => {
  it('are none after a refresh that found no difference', async () => {
    const { cluster, sim } = await setUpSynced({ watch: 'all' }, ['a', 'b']);
    sim.create('v1', 'pods', { metadata: { name: 'p', namespace: 'default' } });
    const before = await cluster.refresh();
    const after = await cluster.refresh();
    expect(after.pods).toHaveLength(1);
    expect(after.pods[0]).toBe(before.pods[0]);
    expect(after.nodes).toEqual(before.nodes);
    expect(after.workloads).toBe(before.workloads);
    const changes = await cluster.changesSince(before.revision);
    expect(changes).toMatchObject({ nodes: new Map(), pods: new Map(), revision: after.revision });
    expect(changes).not.toHaveProperty('workloads');
  });

  it('contain what a new list found after the watch was too old', async () => {
    const { cluster, sim, clock } = await setUpSynced({ watch: 'all' }, ['a', 'b']);
    const { revision } = await cluster.view();
    sim.faults.add({ fault: { kind: 'status', status: 410, reason: 'Expired' }, times: 12 });
    await clock.advance(60_000);
    sim.remove('v1', 'nodes', { name: 'a' });
    sim.create('v1', 'nodes', { metadata: { name: 'c' } });
    await clock.advance(60_000);
    const changes = await cluster.changesSince(revision);
    expect([...(changes?.nodes.keys() ?? [])].sort()).toEqual(['a', 'c']);
    expect(changes?.nodes.get('a')).toBeUndefined();
    expect(changes?.nodes.get('c')).toMatchObject({ name: 'c' });
  });

  it('contain all other objects when one of them changed', async () => {
    const { cluster, sim, clock } = await setUpSynced({ watch: 'all' }, ['a']);
    const { revision } = await cluster.view();
    sim.create('apps/v1', 'daemonsets', {
      metadata: { name: 'logs', namespace: 'kube-system' },
      spec: { template: { spec: { containers: [{ name: 'main' }] } } },
    });
    await clock.advance(0);
    const changes = await cluster.changesSince(revision);
    expect(changes?.workloads?.daemonSets).toMatchObject([{ name: 'logs' }]);
    expect(changes?.nodes.size).toBe(0);
  });
});

describe('a collection that cannot be listed', () => {
  it.each([
    [403, 'Forbidden'],
    [404, 'NotFound'],
  ])(
    'keeps the view from being synced, with a reason that names it (status %s)',
    async (status, reason) => {
      const { sim, clock, open } = await setUp({ watch: 'all' });
      sim.faults.add({
        path: '/apis/policy/v1/poddisruptionbudgets',
        fault: { kind: 'status', status, reason },
        times: 9,
      });
      const cluster = open();
      await clock.advance(5_000);
      await expect(cluster.view()).rejects.toMatchObject({
        code: 'VIEW_STALE',
        facts: { lastError: expect.stringContaining('list /apis/policy/v1/poddisruptionbudgets') },
      });
    },
  );
});

describe('the first list of the watch cache', () => {
  it('is read in pages of one snapshot', async () => {
    const { names, count } = await setUpSynced({ pageSize: 2 }, ['a', 'b', 'c', 'd', 'e']);
    expect(await names()).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(count(`GET ${NODES}`)).toBe(3);
  });

  it('restarts without pages when the continue token expires', async () => {
    const { sim, clock, open, errors } = await setUp({ pageSize: 2 }, ['a', 'b', 'c', 'd', 'e']);
    let requestCount = 0;
    sim.onRequest = () => {
      requestCount += 1;
      if (requestCount === 2) sim.remove('v1', 'nodes', { name: 'a' });
      if (requestCount === 3) sim.compact();
    };
    const cluster = open();
    await clock.advance(0);
    const { nodes } = await cluster.view();
    expect(nodes.map(({ name }) => name)).toEqual(['b', 'c', 'd', 'e']);
    expect(sim.requests.slice(0, 5)).toEqual([
      ...Array.from({ length: 4 }, () => `GET ${NODES}`),
      `WATCH ${NODES}`,
    ]);
    expect(errors).toEqual([]);
  });

  it('is retried with backoff, and the stale view reports the last error', async () => {
    const { sim, clock, open, errors } = await setUp({}, ['a']);
    sim.faults.add({
      fault: { kind: 'status', status: 503, reason: 'ServiceUnavailable' },
      times: 4,
    });
    const cluster = open();
    await clock.advance(0);
    await expect(cluster.view()).rejects.toMatchObject({
      code: 'VIEW_STALE',
      facts: { lastError: expect.stringContaining('503') },
    });
    await clock.advance(60_000);
    expect((await cluster.view()).nodes).toHaveLength(1);
    expect(errors).toHaveLength(4);
    expect(errors.every(({ code }) => code === 'KUBERNETES_UNREACHABLE')).toBe(true);
  });

  it('times out when the API server does not respond', async () => {
    const { sim, clock, open, errors } = await setUp({ requestTimeoutMs: 3_000 }, ['a']);
    sim.faults.add({ fault: { kind: 'hang' } });
    const cluster = open();
    await clock.advance(10_000);
    expect(errors.map(({ code }) => code)).toEqual(['REQUEST_TIMED_OUT']);
    expect((await cluster.view()).nodes).toHaveLength(1);
  });

  it.each([
    [401, 'CREDENTIALS_REFUSED'],
    [403, 'PERMISSION_MISSING'],
  ])('reports missing credentials or permissions (status %s)', async (status, code) => {
    const { sim, clock, open, errors } = await setUp();
    sim.faults.add({ fault: { kind: 'status', status, reason: 'Forbidden' } });
    open();
    await clock.advance(0);
    expect(errors.map((error) => error.code)).toEqual([code]);
  });
});

describe('the watch of the watch cache', () => {
  it('fails when only parts of an event arrive beyond the end of the watch', async () => {
    const clock = new VirtualClock();
    async function* trickle() {
      for (;;) {
        yield new TextEncoder().encode('{');
        await clock.sleep(1_000);
      }
    }
    const transport = new ScriptedTransport(
      ({ url }) => ({
        status: 200,
        body: url.searchParams.has('watch')
          ? trickle()
          : '{"metadata":{"resourceVersion":"1"},"items":[]}',
      }),
      { clock },
    );
    const errors: PvescalerError[] = [];
    const { open } = await setUp({ transport, clock, onError: (error) => errors.push(error) });
    open();
    await clock.advance(50_000);
    expect(errors.map(({ message }) => message)).toEqual([
      `watch ${NODES}: the connection was silent beyond the end of the watch`,
    ]);
  });

  it('resumes after a broken connection without a new list', async () => {
    const { sim, clock, names, lists } = await setUpSynced({}, ['a']);
    sim.watches.disconnect();
    sim.create('v1', 'nodes', { metadata: { name: 'b' } });
    await clock.advance(5_000);
    expect(await names()).toEqual(['a', 'b']);
    expect(lists).toEqual([NODES]);
  });

  it('lists again after an ERROR event with 410', async () => {
    const { sim, clock, names, lists } = await setUpSynced({}, ['a', 'b']);
    sim.watches.disconnect();
    sim.remove('v1', 'nodes', { name: 'a' });
    sim.compact();
    await clock.advance(5_000);
    expect(await names()).toEqual(['b']);
    expect(lists).toEqual([NODES, NODES]);
  });

  it('lists again after a response with status 410', async () => {
    const { sim, clock, names, lists } = await setUpSynced({}, ['a']);
    const fault = { kind: 'status', status: 410, reason: 'Gone' } as const;
    sim.faults.add({ verb: 'WATCH', fault });
    sim.watches.disconnect();
    await clock.advance(5_000);
    expect(await names()).toEqual(['a']);
    expect(lists).toEqual([NODES, NODES]);
  });

  it('lists again when the server was restored from an older backup', async () => {
    const { sim, clock, names, lists } = await setUpSynced({}, ['a', 'b']);
    const backup = sim.snapshot();
    sim.remove('v1', 'nodes', { name: 'a' });
    await clock.advance(1_000);
    expect(await names()).toEqual(['b']);
    sim.restore(backup);
    await clock.advance(5_000);
    expect(await names()).toEqual(['a', 'b']);
    expect(lists).toEqual([NODES, NODES]);
  });

  it('reports an ERROR event other than 410 and resumes', async () => {
    const { sim, clock, names, lists, errors } = await setUpSynced({}, ['a']);
    const object = {
      kind: 'Status',
      metadata: {},
      code: 500,
      reason: 'InternalError',
      message: 'etcd',
    };
    sim.watches.sendAndClose(JSON.stringify({ type: 'ERROR', object }));
    sim.create('v1', 'nodes', { metadata: { name: 'b' } });
    await clock.advance(5_000);
    expect(await names()).toEqual(['a', 'b']);
    expect(lists).toEqual([NODES]);
    expect(errors.map(({ message }) => message)).toEqual([expect.stringContaining('etcd')]);
  });

  it.each([
    ['a line that is not JSON', '{"type": "MODIFIED", "object"'],
    ['a value that is not an event', '[]'],
    ['an event without an object', '{"type":"MODIFIED","object":null}'],
    [
      'an event of an unknown type',
      '{"type":"RENAMED","object":{"metadata":{"resourceVersion":"9"}}}',
    ],
    ['an event without a resource version', '{"type":"BOOKMARK","object":{"metadata":{}}}'],
  ])('reports %s and lists again', async (_what, line) => {
    const { sim, clock, names, count, errors } = await setUpSynced({}, ['a']);
    sim.watches.sendAndClose(line);
    sim.create('v1', 'nodes', { metadata: { name: 'b' } });
    await clock.advance(5_000);
    expect(errors.map(({ code }) => code)).toEqual(['UNEXPECTED_ANSWER']);
    expect(await names()).toEqual(['a', 'b']);
    expect(count(`GET ${NODES}`)).toBe(2);
  });

  it('detects a stalled connection', async () => {
    const { sim, clock, cluster, names, errors } = await setUpSynced({}, ['a']);
    const before = (await cluster.view()).freshAt;
    sim.watches.stall();
    sim.create('v1', 'nodes', { metadata: { name: 'b' } });
    await clock.advance(49_000);
    expect(await names()).toEqual(['a']);
    expect((await cluster.view()).freshAt).toBe(before);
    await clock.advance(5_000);
    expect(await names()).toEqual(['a', 'b']);
    expect(errors.map(({ code }) => code)).toEqual(['REQUEST_TIMED_OUT']);
  });

  it('confirms an unchanged view at least once a minute and soon after an error', async () => {
    const { sim, clock, cluster } = await setUpSynced({}, ['a']);
    for (let minute = 0; minute < 10; minute += 1) {
      await clock.advance(60_000);
      expect(clock.now() - (await cluster.view()).freshAt).toBeLessThan(60_000);
    }
    sim.watches.disconnect();
    const cutAt = clock.now();
    await clock.advance(10_000);
    expect((await cluster.view()).freshAt).toBeGreaterThan(cutAt);
  });

  it('backs off when each watch ends immediately', async () => {
    const { sim, clock, count } = await setUpSynced({}, ['a']);
    const line = JSON.stringify({
      type: 'BOOKMARK',
      object: { metadata: { resourceVersion: '7' } },
    });
    sim.faults.add({ verb: 'WATCH', fault: { kind: 'watch-line', line }, times: 1_000 });
    sim.watches.disconnect();
    await clock.advance(60_000);
    expect(count(`WATCH ${NODES}`)).toBeLessThan(20);
  });

  it('does not treat buffered events as fresh after the process was suspended', async () => {
    const { sim, clock, cluster, names } = await setUpSynced({}, ['a']);
    const before = (await cluster.view()).freshAt;
    // Simulates a suspended process: only the wall clock advances.
    clock.setWallClock(clock.now() + 600_000);
    sim.change('v1', 'nodes', { metadata: { name: 'a', labels: { x: 'y' } } });
    await Promise.resolve();
    await clock.advance(0);
    expect((await cluster.view()).freshAt).toBe(before);
    await clock.advance(20_000);
    expect(clock.now() - (await cluster.view()).freshAt).toBeLessThan(20_000);
    expect(await names()).toEqual(['a']);
  });

  it('ends with its cluster and leaves no timer', async () => {
    const { sim, clock, cluster } = await setUpSynced({}, ['a']);
    expect(sim.watches.openCount).toBe(1);
    await cluster.close();
    await clock.advance(0);
    expect(sim.watches.openCount).toBe(0);
    expect(clock.sleeping).toBe(0);
  });
});
