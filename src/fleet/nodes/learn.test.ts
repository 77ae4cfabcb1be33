// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aJoiningTestFleet, aReadyMachine } from '../testing/joining-test-fleet.ts';

describe('learnAllocatable', () => {
  it('records how much of a machine of that size pods can use', async () => {
    const testFleet = aJoiningTestFleet();
    const { size } = await aReadyMachine(testFleet);
    const state = await testFleet.store.pools.get('workers');
    const key = `${size.cpu}x${size.memoryBytes}x${size.diskBytes}`;
    expect(state?.value.allocatable[key]).toMatchObject({
      cpuMilli: 2_000,
      memoryBytes: 4 * 2 ** 30,
      pods: 110,
    });
  });
});
