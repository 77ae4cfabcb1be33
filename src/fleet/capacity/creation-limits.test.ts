// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aPool, aRegion, REGION, someSettings } from '../testing/settings.ts';
import { aTestFleet, machinesIn, onePass, REASON } from '../testing/test-fleet.ts';

describe('CreationLimits', () => {
  it('limits the creations in progress per host and per storage; the others wait', async () => {
    const settings = someSettings([aPool({ limits: { ...aPool().limits, min: 0, max: 20 } })], {
      regions: { [REGION]: aRegion({ limits: { createsPerHost: 2, createsPerStorage: 1 } }) },
    });
    const testFleet = aTestFleet(settings);
    await testFleet.fleet.scaleTo('workers', 9, REASON);
    let maxInProgress = 0;
    for (let pass = 0; pass < 200; pass += 1) {
      await onePass(testFleet.fleet, testFleet);
      const creating = (await machinesIn(testFleet.store)).filter(({ phase }) =>
        ['placed', 'creating'].includes(phase),
      );
      const hosts = creating.map(({ placement }) => placement?.host);
      maxInProgress = Math.max(maxInProgress, hosts.length);
      expect(new Set(hosts).size).toBe(hosts.length);
    }
    expect(maxInProgress).toBe(3);
    expect((await machinesIn(testFleet.store)).every(({ phase }) => phase === 'ready')).toBe(true);
  });
});
