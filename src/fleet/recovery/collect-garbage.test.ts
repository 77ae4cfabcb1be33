// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aTestFleet, machinesIn, onePass, REASON, untilAtRest } from '../testing/test-fleet.ts';

describe('collectGarbage', () => {
  it('removes the records of deleted machines and finished intents after two hours', async () => {
    const testFleet = aTestFleet();
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    await testFleet.clock.advance(2 * 3_600_000);
    await onePass(testFleet.fleet, testFleet);
    expect(await machinesIn(testFleet.store)).toEqual([]);
    expect(await testFleet.store.intents.list()).toEqual([]);
  });
});
