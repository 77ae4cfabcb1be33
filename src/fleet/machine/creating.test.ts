// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aPool, someSettings, templateSource } from '../testing/settings.ts';
import {
  anUnrecordedClone,
  aTestFleet,
  phasesIn,
  runPasses,
  untilAtRest,
} from '../testing/test-fleet.ts';

describe('creating: a clone call whose response was lost', () => {
  it('is not repeated while a clone of the template is running that no record names', async () => {
    const testFleet = aTestFleet(someSettings([aPool({ source: templateSource() })]));
    const { hypervisor, fleet, store } = testFleet;
    const { end } = await anUnrecordedClone(testFleet);
    const clones = () => hypervisor.calls.filter(({ method }) => method === 'cloneVm');
    await runPasses(testFleet, 10);
    expect(clones()).toHaveLength(1);
    expect(await phasesIn(store)).toEqual(['creating']);
    end();
    await untilAtRest(fleet, testFleet);
    expect(clones()).toHaveLength(2);
    expect(await phasesIn(store)).toEqual(['ready']);
  });
});
