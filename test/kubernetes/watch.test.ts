// SPDX-License-Identifier: Apache-2.0
// The watch cache against an API server that misbehaves, on virtual time.
import { describe, expect, it, onTestFinished } from 'vitest';
import { KubernetesCluster, type KubernetesClusterOptions } from '../../src/kubernetes/index.ts';
import type { PvescalerError } from '../../src/ports/errors.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import { KubernetesSim } from '../../src/sim/kubernetes/index.ts';
import { SimTransport } from './sim-transport.ts';

const NODES = '/api/v1/nodes';

async function scene(
  options: Partial<KubernetesClusterOptions> = {},
  nodes: readonly string[] = [],
) {
  const clock = new VirtualClock();
  const random = new SeededRandom(5);
  const sim = new KubernetesSim({ clock, random });
  for (const name of nodes) sim.create('v1', 'nodes', { metadata: { name } });
  const troubles: PvescalerError[] = [];
  const open = () => {
    const cluster = new KubernetesCluster({
      transport: new SimTransport(sim),
      server: 'http://sim.example',
      caPem: undefined,
      clock,
      random,
      watchPods: false,
      onTrouble: (error) => troubles.push(error),
      ...options,
    });
    onTestFinished(() => cluster.close());
    return cluster;
  };
  return { clock, sim, troubles, open };
}

async function synced(options?: Partial<KubernetesClusterOptions>, nodes?: readonly string[]) {
  const at = await scene(options, nodes);
  const cluster = at.open();
  await at.clock.advance(0);
  const names = async () => (await cluster.view()).nodes.map(({ name }) => name);
  const count = (line: string) => at.sim.requests.filter((one) => one === line).length;
  return { ...at, cluster, names, count };
}

describe('the first list', () => {
  it('is read in pages, all of the same instant', async () => {
    const { names, count } = await synced({ pageSize: 2 }, ['a', 'b', 'c', 'd', 'e']);
    expect(await names()).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(count(`GET ${NODES}`)).toBe(3);
  });

  it('begins anew, in one piece, when its pages expire', async () => {
    const { sim, clock, open, troubles } = await scene({ pageSize: 2 }, ['a', 'b', 'c', 'd', 'e']);
    let asked = 0;
    sim.onRequest = () => {
      asked += 1;
      if (asked === 2) sim.remove('v1', 'nodes', { name: 'a' });
      if (asked === 3) sim.forget();
    };
    const cluster = open();
    await clock.advance(0);
    const { nodes } = await cluster.view();
    expect(nodes.map(({ name }) => name)).toEqual(['b', 'c', 'd', 'e']);
    expect(sim.requests.slice(0, 5)).toEqual([
      ...Array.from({ length: 4 }, () => `GET ${NODES}`),
      `WATCH ${NODES}`,
    ]);
    expect(troubles).toEqual([]);
  });

  it('is tried again, later each time, and says meanwhile what is in the way', async () => {
    const { sim, clock, open, troubles } = await scene({}, ['a']);
    sim.faults.add({
      fault: { kind: 'status', status: 503, reason: 'ServiceUnavailable' },
      times: 4,
    });
    const cluster = open();
    await clock.advance(0);
    await expect(cluster.view()).rejects.toMatchObject({
      code: 'VIEW_STALE',
      facts: { lastTrouble: expect.stringContaining('503') },
    });
    await clock.advance(60_000);
    expect((await cluster.view()).nodes).toHaveLength(1);
    expect(troubles).toHaveLength(4);
    expect(troubles.every(({ code }) => code === 'KUBERNETES_UNREACHABLE')).toBe(true);
  });

  it('does not wait for ever for an answer', async () => {
    const { sim, clock, open, troubles } = await scene({ requestTimeoutMs: 3_000 }, ['a']);
    sim.faults.add({ fault: { kind: 'hang' } });
    const cluster = open();
    await clock.advance(10_000);
    expect(troubles.map(({ code }) => code)).toEqual(['REQUEST_TIMED_OUT']);
    expect((await cluster.view()).nodes).toHaveLength(1);
  });

  it.each([
    [401, 'CREDENTIALS_REFUSED'],
    [403, 'PERMISSION_MISSING'],
  ])('says when it may not (%s)', async (status, code) => {
    const { sim, clock, open, troubles } = await scene();
    sim.faults.add({ fault: { kind: 'status', status, reason: 'Forbidden' } });
    open();
    await clock.advance(0);
    expect(troubles.map((error) => error.code)).toEqual([code]);
  });
});

describe('the watch', () => {
  it('goes on where it was cut, without reading everything anew', async () => {
    const { sim, clock, names, count } = await synced({}, ['a']);
    sim.watches.cut();
    sim.create('v1', 'nodes', { metadata: { name: 'b' } });
    await clock.advance(5_000);
    expect(await names()).toEqual(['a', 'b']);
    expect(count(`GET ${NODES}`)).toBe(1);
  });

  it('reads anew when the server has forgotten: as an event of the watch', async () => {
    const { sim, clock, names, count } = await synced({}, ['a', 'b']);
    sim.watches.cut();
    sim.remove('v1', 'nodes', { name: 'a' });
    sim.forget();
    await clock.advance(5_000);
    expect(await names()).toEqual(['b']);
    expect(count(`GET ${NODES}`)).toBe(2);
  });

  it('reads anew when the server has forgotten: as a status', async () => {
    const { sim, clock, names, count } = await synced({}, ['a']);
    const fault = { kind: 'status', status: 410, reason: 'Gone' } as const;
    sim.faults.add({ verb: 'WATCH', fault });
    sim.watches.cut();
    await clock.advance(5_000);
    expect(await names()).toEqual(['a']);
    expect(count(`GET ${NODES}`)).toBe(2);
  });

  it('tells of an ERROR event that is not about age, and goes on', async () => {
    const { sim, clock, names, count, troubles } = await synced({}, ['a']);
    const object = {
      kind: 'Status',
      metadata: {},
      code: 500,
      reason: 'InternalError',
      message: 'etcd',
    };
    sim.watches.say(JSON.stringify({ type: 'ERROR', object }));
    sim.create('v1', 'nodes', { metadata: { name: 'b' } });
    await clock.advance(5_000);
    expect(await names()).toEqual(['a', 'b']);
    expect(count(`GET ${NODES}`)).toBe(1);
    expect(troubles.map(({ message }) => message)).toEqual([expect.stringContaining('etcd')]);
  });

  it.each([
    ['what is not JSON', '{"type": "MODIFIED", "object"'],
    ['what is no event', '[]'],
    ['an event about nothing', '{"type":"MODIFIED","object":null}'],
    [
      'an event of an unknown type',
      '{"type":"RENAMED","object":{"metadata":{"resourceVersion":"9"}}}',
    ],
    ['an event without version', '{"type":"BOOKMARK","object":{"metadata":{}}}'],
  ])('does not swallow %s: it says so and reads anew', async (_what, line) => {
    const { sim, clock, names, count, troubles } = await synced({}, ['a']);
    sim.watches.say(line);
    sim.create('v1', 'nodes', { metadata: { name: 'b' } });
    await clock.advance(5_000);
    expect(troubles.map(({ code }) => code)).toEqual(['UNEXPECTED_ANSWER']);
    expect(await names()).toEqual(['a', 'b']);
    expect(count(`GET ${NODES}`)).toBe(2);
  });

  it('notices a connection that is dead and does not know it', async () => {
    const { sim, clock, cluster, names, troubles } = await synced({}, ['a']);
    const before = (await cluster.view()).freshAt;
    sim.watches.silence();
    sim.create('v1', 'nodes', { metadata: { name: 'b' } });
    await clock.advance(49_000);
    expect(await names()).toEqual(['a']);
    expect((await cluster.view()).freshAt).toBe(before);
    await clock.advance(5_000);
    expect(await names()).toEqual(['a', 'b']);
    expect(troubles.map(({ code }) => code)).toEqual(['REQUEST_TIMED_OUT']);
  });

  it('proves a quiet view at least once a minute, and soon after trouble', async () => {
    const { sim, clock, cluster } = await synced({}, ['a']);
    for (let minute = 0; minute < 10; minute += 1) {
      await clock.advance(60_000);
      expect(clock.now() - (await cluster.view()).freshAt).toBeLessThan(60_000);
    }
    sim.watches.cut();
    const cutAt = clock.now();
    await clock.advance(10_000);
    expect((await cluster.view()).freshAt).toBeGreaterThan(cutAt);
  });

  it('does not ask in a loop for a watch that ends at once', async () => {
    const { sim, clock, count } = await synced({}, ['a']);
    const line = JSON.stringify({
      type: 'BOOKMARK',
      object: { metadata: { resourceVersion: '7' } },
    });
    sim.faults.add({ verb: 'WATCH', fault: { kind: 'line', line }, times: 1_000 });
    sim.watches.cut();
    await clock.advance(60_000);
    expect(count(`WATCH ${NODES}`)).toBeLessThan(20);
  });

  it('does not take for new what lay in the socket while the process was stopped', async () => {
    const { sim, clock, cluster, names } = await synced({}, ['a']);
    const before = (await cluster.view()).freshAt;
    // Suspended: the wall clock went on, nothing in here did.
    clock.setWallClock(clock.now() + 600_000);
    sim.change('v1', 'nodes', { metadata: { name: 'a', labels: { x: 'y' } } });
    await Promise.resolve();
    await clock.advance(0);
    expect((await cluster.view()).freshAt).toBe(before);
    await clock.advance(20_000);
    expect(clock.now() - (await cluster.view()).freshAt).toBeLessThan(20_000);
    expect(await names()).toEqual(['a']);
  });

  it('ends with its cluster, and leaves nothing waiting', async () => {
    const { sim, clock, cluster } = await synced({}, ['a']);
    expect(sim.watches.count).toBe(1);
    await cluster.close();
    await clock.advance(0);
    expect(sim.watches.count).toBe(0);
    expect(clock.sleeping).toBe(0);
  });
});
