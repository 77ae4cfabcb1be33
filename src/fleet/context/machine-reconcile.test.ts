// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Machine } from '../../model/machine.ts';
import { someSettings } from '../testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  existingResources,
  machinesIn,
  onePass,
  REASON,
  untilAtRest,
} from '../testing/test-fleet.ts';

describe('pollTask', () => {
  it('polls the task of a record of an earlier version, which has neither kind nor host', async () => {
    const settings = someSettings();
    const testFleet = aTestFleet(settings);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    let task: Machine['task'];
    for (let pass = 0; pass < 60 && task === undefined; pass += 1) {
      await onePass(testFleet.fleet, testFleet);
      task = (await machinesIn(testFleet.store))[0]?.task;
    }
    const [seen] = await testFleet.store.machines.list();
    if (seen === undefined || task === undefined) throw new Error('no task was recorded');
    const { upid, startedAt } = task;
    await testFleet.store.machines.replace(seen, { ...seen.value, task: { upid, startedAt } });
    const fleet = aFleet({ ...testFleet, settings, seed: 2 });
    await untilAtRest(fleet, testFleet);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'ready' }]);
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(1);
  });
});
