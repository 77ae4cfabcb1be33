// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aMachine, aMachineId } from '../../ports/fakes/sample-records.ts';
import { aPool, aRegion, REGION, someSettings } from '../testing/settings.ts';
import { aTestFleet, machinesIn, onePass, REASON } from '../testing/test-fleet.ts';
import { ConcurrencyLimits } from './place.ts';

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

describe('ConcurrencyLimits', () => {
  const at = (host: string, diskStorage: string, region = REGION) => ({
    ...aMachine({ id: aMachineId(9) }),
    placement: { region, host, diskStorage, vmId: 1, name: 'n', addresses: [] },
  });

  it('a host is busy with as many machines as allowed, counting only its own and its region', async () => {
    const view = await aTestFleet().hypervisor.view();
    const max = { perHost: 2, perStorage: 9 };
    const two = [at('pve1', 'a'), at('pve1', 'b'), at('pve2', 'a'), at('pve2', 'a', 'other')];
    const limits = new ConcurrencyLimits(view, [...two, aMachine()], max);
    expect(limits.busyHosts()).toEqual(['pve1']);
    expect(limits.isHostBusy('pve1')).toBe(true);
    expect(limits.isHostBusy('pve2')).toBe(false);
  });

  it('a local storage is counted per host, and a shared one across hosts', async () => {
    const view = await aTestFleet().hypervisor.view();
    const max = { perHost: 9, perStorage: 2 };
    const spread = (storage: string) => [at('pve1', storage), at('pve2', storage)];
    const local = new ConcurrencyLimits(view, [...spread('local'), aMachine()], max);
    expect(local.isStorageBusy('pve1', 'local')).toBe(false);
    const full = new ConcurrencyLimits(view, [...spread('local'), at('pve1', 'local')], max);
    expect(full.isStorageBusy('pve1', 'local')).toBe(true);
    expect(full.isStorageBusy('pve2', 'local')).toBe(false);
    expect(full.isStorageBusy('pve1', 'local-lvm')).toBe(false);
    const shared = new ConcurrencyLimits(view, spread('seeds'), max);
    expect(shared.isStorageBusy('pve1', 'seeds')).toBe(true);
    expect(shared.isStorageBusy('pve3', 'seeds')).toBe(true);
  });
});
