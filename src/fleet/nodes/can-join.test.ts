// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aJoiningTestFleet, joiningSettings } from '../testing/joining-test-fleet.ts';
import { aFleet, journalReasonsIn, onePass, phasesIn, REASON } from '../testing/test-fleet.ts';

describe('joinRefusal', () => {
  it('without access to a cluster, a machine that needs a token stays requested, and the reason is recorded', async () => {
    const testFleet = aJoiningTestFleet();
    const settings = joiningSettings();
    const fleet = aFleet({ ...testFleet, cluster: undefined, settings, seed: 9 });
    await fleet.scaleTo('workers', 1, REASON);
    for (let pass = 0; pass < 5; pass += 1) await onePass(fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['requested']);
    expect(await journalReasonsIn(testFleet.store)).toContain('NoClusterAccess');
  });
});
