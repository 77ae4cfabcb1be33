// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aTestFleet, REASON, untilAtRest } from '../testing/test-fleet.ts';

describe('isImagePresent', () => {
  it('downloads an image once per host, however many machines wait for it', async () => {
    const testFleet = aTestFleet();
    await testFleet.fleet.scaleTo('workers', 6, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const downloads = testFleet.hypervisor.calls.filter(({ method }) => method === 'downloadImage');
    expect(downloads).toHaveLength(3);
    const volumes = [...testFleet.hypervisor.state.volumes.values()].map(({ id }) => id);
    expect(volumes).toContain('local:import/noble-with-agent-abababababab.qcow2');
  });
});
