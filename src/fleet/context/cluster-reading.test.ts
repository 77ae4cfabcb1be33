// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Cancelled, Unreachable } from '../../ports/errors.ts';
import { aClusterNode } from '../../ports/fakes/sample-cluster.ts';
import { aJoiningTestFleet, aReadyMachine } from '../testing/joining-test-fleet.ts';
import {
  journalReasonsIn,
  phasesIn,
  REASON,
  runPasses,
  untilAtRest,
} from '../testing/test-fleet.ts';
import { knownNodes, readCluster } from './cluster-reading.ts';
import { DriverState } from './driver-state.ts';

const MINUTE_MS = 60_000;

describe('a cluster that cannot be read', () => {
  it('no machine is started, failed or declared lost', async () => {
    const testFleet = aJoiningTestFleet();
    const { placement } = await aReadyMachine(testFleet);
    testFleet.guests.behaviour = { neverRegisters: true };
    await testFleet.fleet.request('workers', 1, REASON);
    await runPasses(testFleet, 25);
    expect(await phasesIn(testFleet.store)).toEqual(expect.arrayContaining(['ready', 'joining']));
    testFleet.cluster.disconnect();
    testFleet.cluster.state.removeNode(placement.name);
    await testFleet.clock.advance(2 * 60_000);
    await testFleet.fleet.request('workers', 1, REASON);
    for (let minute = 0; minute < 20; minute += 1) {
      await testFleet.clock.advance(60_000);
      await runPasses(testFleet, 1);
    }
    expect((await phasesIn(testFleet.store)).toSorted()).toEqual(['joining', 'ready', 'requested']);
    testFleet.cluster.reconnect();
    testFleet.guests.behaviour = {};
    await untilAtRest(testFleet.fleet, testFleet);
    expect((await phasesIn(testFleet.store)).filter((phase) => phase === 'ready')).toHaveLength(3);
  });

  it('does not fail a machine that was requested before the outage was noticed', async () => {
    const testFleet = aJoiningTestFleet();
    testFleet.cluster.disconnect();
    await testFleet.fleet.request('workers', 1, REASON);
    for (let minute = 0; minute < 30; minute += 1) {
      await runPasses(testFleet, 3);
      await testFleet.clock.advance(60_000);
    }
    testFleet.cluster.reconnect();
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
  });

  it('a view that is too old is stale even after the wall clock was set back', async () => {
    const testFleet = aJoiningTestFleet();
    await aReadyMachine(testFleet);
    testFleet.cluster.disconnect();
    testFleet.clock.setWallClock(testFleet.clock.now() - 60 * MINUTE_MS);
    await testFleet.clock.advance(3 * MINUTE_MS);
    const known = (await testFleet.store.journal.read()).length;
    await runPasses(testFleet, 1);
    expect((await journalReasonsIn(testFleet.store)).slice(known)).toContain('ViewStale');
  });
});

describe('readCluster', () => {
  it('reads nothing without a cluster', async () => {
    const { clock } = aJoiningTestFleet();
    const reading = await readCluster({ clock }, new DriverState());
    expect(reading).toEqual({ kind: 'none' });
    expect(knownNodes(reading)).toEqual([]);
  });

  it.each([
    [90_000, 'fresh'],
    [90_001, 'stale'],
    [-1_000, 'fresh'],
    [-1_001, 'stale'],
  ] as const)('a view that is %d ms old is %s', async (ageMs, kind) => {
    const { clock, cluster } = aJoiningTestFleet();
    const node = aClusterNode();
    cluster.state.putNode(node);
    const state = new DriverState();
    const first = await readCluster({ cluster, clock }, state);
    const view = await cluster.view();
    cluster.view = () => Promise.resolve({ ...view, nodes: [], freshAt: clock.now() - ageMs });
    const reading = await readCluster({ cluster, clock }, state);
    expect(reading.kind).toBe(kind);
    expect(knownNodes(first)).toMatchObject([{ name: node.name }]);
    expect(knownNodes(reading)).toHaveLength(kind === 'stale' ? 1 : 0);
    if (reading.kind === 'stale') expect(reading.why).toBe('its last update is too old');
    else expect(state.clusterSeenAt).toBe(clock.now() - ageMs);
  });

  it('remembers when the cluster was read first, and when it could not be read', async () => {
    const { clock, cluster } = aJoiningTestFleet();
    const state = new DriverState();
    const start = clock.monotonic();
    await readCluster({ cluster, clock }, state);
    await clock.advance(5_000);
    await readCluster({ cluster, clock }, state);
    expect(state.clusterStaleAt).toBe(start);
    const facts = { lastError: 'certificate expired' };
    cluster.view = () =>
      Promise.reject(new Unreachable('KUBERNETES_UNREACHABLE', 'no view', { facts }));
    const reading = await readCluster({ cluster, clock }, state);
    expect(reading).toMatchObject({ kind: 'stale', why: 'certificate expired' });
    expect(state.clusterStaleAt).toBe(start + 5_000);
    cluster.view = () => Promise.reject(new Unreachable('KUBERNETES_UNREACHABLE', 'no view'));
    expect(await readCluster({ cluster, clock }, state)).toMatchObject({ why: 'no view' });
  });

  it.each([new Cancelled('CANCELLED', 'stopped'), new TypeError('a bug')])(
    'does not take %s for a cluster that cannot be read',
    async (thrown) => {
      const { clock, cluster } = aJoiningTestFleet();
      cluster.view = () => Promise.reject(thrown);
      await expect(readCluster({ cluster, clock }, new DriverState())).rejects.toBe(thrown);
    },
  );
});
