// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Unreachable } from '../../ports/errors.ts';
import { aPool, STATIC_NETWORK, someSettings } from '../testing/settings.ts';
import {
  addressesInUse,
  aTestFleet,
  existingResources,
  machinesIn,
  onePass,
  REASON,
  untilAtRest,
} from '../testing/test-fleet.ts';

describe('a ready machine whose VM is missing', () => {
  it('is gone after five minutes, and its seed and address are removed', async () => {
    const testFleet = aTestFleet(someSettings([aPool({ network: STATIC_NETWORK })]));
    const refusal = new Unreachable('PVE_UNREACHABLE', 'connection refused');
    for (let n = 0; n < 3; n += 1) testFleet.hypervisor.failNext('deleteVolume', refusal);
    testFleet.hypervisor.onCall = ({ method }) => {
      if (method === 'deleteVolume') testFleet.hypervisor.state.vms.delete(1_250);
    };
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet, 30);
    testFleet.hypervisor.onCall = undefined;
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'ready' }]);
    for (let minute = 0; minute < 8; minute += 1) {
      await testFleet.clock.advance(60_000);
      await onePass(testFleet.fleet, testFleet);
    }
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'gone' }]);
    expect(existingResources(testFleet.hypervisor)).toEqual({ vms: [], machines: [], isos: [] });
    expect(await addressesInUse(testFleet.store)).toEqual([]);
  });

  it('stays ready when its VM was missing only for a moment, twice', async () => {
    const testFleet = aTestFleet();
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const { vms } = testFleet.hypervisor.state;
    const [vm] = [...vms.values()].filter(({ vmId }) => vmId === 1_250);
    vm?.options.set('name', 'renamed-by-a-person');
    for (let time = 0; time < 2; time += 1) {
      vms.delete(1_250);
      await onePass(testFleet.fleet, testFleet);
      if (vm !== undefined) vms.set(1_250, vm);
      await onePass(testFleet.fleet, testFleet);
      await testFleet.clock.advance(10 * 60_000);
    }
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'ready' }]);
  });
});
