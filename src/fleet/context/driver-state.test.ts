// SPDX-License-Identifier: Apache-2.0
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import { CapacityForecast } from '../capacity/capacity-forecast.ts';
import { Reconciler } from '../driver/reconciler.ts';
import { RecordCache } from '../records/record-cache.ts';
import { aJoiningTestFleet, joiningSettings, onlyMachine } from '../testing/joining-test-fleet.ts';
import { REGION } from '../testing/settings.ts';
import { machinesIn, REASON } from '../testing/test-fleet.ts';
import { DriverState } from './driver-state.ts';

const MINUTE_MS = 60_000;

const SETTINGS = joiningSettings();

describe('DriverState', () => {
  it('keeps no token after the machine has started, and nothing about a machine whose record is removed', async () => {
    const testFleet = aJoiningTestFleet();
    const { store, clock, hypervisor } = testFleet;
    const state = new DriverState();
    const errors: unknown[] = [];
    const engine = {
      ...testFleet,
      settings: () => SETTINGS,
      random: new SeededRandom(3),
      hypervisors: new Map([[REGION, hypervisor]]),
      cache: new RecordCache(store),
      forecast: new CapacityForecast(),
    };
    const reconciler = new Reconciler(engine, { state, onError: (error) => errors.push(error) });
    const lease = await store.leases.acquire({ name: 'r', holder: 't', durationMs: 3_600_000 });
    const reconcile = async (count: number) => {
      for (let pass = 0; pass < count; pass += 1) {
        testFleet.guests.settle();
        await reconciler.pass({ lease, mayAct: () => true });
        await reconciler.drain();
        await clock.advance(1_000);
      }
    };
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await reconcile(40);
    const { id, placement } = await onlyMachine(testFleet, 'ready');
    expect(testFleet.cluster.state.tokens).toHaveLength(1);
    expect(state.tokens.size).toBe(0);
    testFleet.guests.behaviour = { neverRegisters: true };
    testFleet.cluster.state.removeNode(placement.name);
    await reconcile(2);
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await reconcile(20);
    await clock.advance(40 * MINUTE_MS);
    await reconcile(2);
    expect(await machinesIn(store)).toEqual([]);
    expect(inspect(state, { depth: 6 })).not.toContain(id);
  });
});
