// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aPool, STATIC_NETWORK, someSettings } from '../testing/settings.ts';
import { addressesInUse, aTestFleet, machinesIn, untilAtRest, WHY } from '../testing/test-fleet.ts';

describe('a machine that loses its place', () => {
  it('gives back the address that it loses with it', async () => {
    const bench = aTestFleet(someSettings([aPool({ network: STATIC_NETWORK })]));
    const { vms } = bench.hypervisor.state;
    bench.hypervisor.onCall = ({ method, vmId = 0 }) => {
      if (method !== 'createVm' || vmId !== 1_250 || vms.has(vmId)) return;
      // Somebody was quicker, with the id and with the address.
      const options = new Map([
        ['name', 'theirs'],
        ['ipconfig0', 'ip=10.10.10.11/24'],
      ]);
      vms.set(vmId, { vmId, host: 'pve1', options, revision: 1, startedAt: 0 });
    };
    await bench.fleet.scaleTo('workers', 1, WHY);
    await untilAtRest(bench.fleet, bench);
    const [machine] = await machinesIn(bench.store);
    expect(machine).toMatchObject({
      phase: 'ready',
      placement: { vmId: 1_251, addresses: ['10.10.10.12/24'] },
    });
    expect(await addressesInUse(bench.store)).toEqual(['10.10.10.12']);
    expect(vms.get(1_250)?.options.get('name')).toBe('theirs');
  });
});
