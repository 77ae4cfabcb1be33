// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { InvalidConfig } from '../../ports/errors.ts';
import { aTestFleet, phasesIn, REASON, untilAtRest } from '../testing/test-fleet.ts';

describe('backOff', () => {
  it('counts two machines of a pool that fail in the same pass as one failure', async () => {
    const testFleet = aTestFleet();
    const refusal = new InvalidConfig('CONFIG_INVALID', 'no such bridge');
    testFleet.hypervisor.failNext('createVm', refusal);
    testFleet.hypervisor.failNext('createVm', refusal);
    await testFleet.fleet.scaleTo('workers', 2, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['failed', 'failed']);
    const { pools } = await testFleet.fleet.status();
    expect(pools[0]?.backoff?.failures).toBe(1);
  });
});
