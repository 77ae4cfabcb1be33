// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aJoiningTestFleet, aReadyMachine } from '../testing/joining-test-fleet.ts';
import {
  journalReasonsIn,
  phasesIn,
  REASON,
  runPasses,
  untilAtRest,
} from '../testing/test-fleet.ts';

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
