// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Unreachable } from '../../ports/errors.ts';
import { aPool, aRegion, REGION, STATIC_NETWORK, someSettings } from '../testing/settings.ts';
import {
  addressesInUse,
  aFleet,
  aTestFleet,
  journalReasonsIn,
  machinesIn,
  onePass,
  phasesIn,
  REASON,
  runPasses,
  untilAtRest,
} from '../testing/test-fleet.ts';

const UNPLACED_TIMEOUT_MS = 60_000;
const HUGE = { cpu: 2, memoryBytes: 2 ** 50, diskBytes: 2 ** 34 };

function settings(pool: Parameters<typeof aPool>[0] = {}) {
  return someSettings([aPool({ size: HUGE, ...pool })], { unplacedTimeoutMs: UNPLACED_TIMEOUT_MS });
}

describe('a machine that no host has capacity for', () => {
  it('fails after the unplaced timeout, with the reason', async () => {
    const testFleet = aTestFleet(settings());
    const { fleet, store } = testFleet;
    await fleet.scaleTo('workers', 1, REASON);
    await runPasses(testFleet, 59);
    expect(await phasesIn(store)).toEqual(['requested']);
    await runPasses(testFleet, 3);
    const [machine] = await machinesIn(store);
    expect(machine).toMatchObject({
      phase: 'failed',
      failure: { code: 'NO_HOST_FITS', phase: 'requested' },
      deletionReason: machine?.failure?.message,
    });
    const failed = (await store.journal.read()).filter(({ kind }) => kind === 'failed');
    expect(failed).toMatchObject([
      { reason: 'NO_HOST_FITS', message: expect.stringContaining('found no place: ') as unknown },
    ]);
  });

  it('waits without an unplaced timeout', async () => {
    const { unplacedTimeoutMs: _, ...without } = settings();
    const testFleet = aTestFleet(without);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await testFleet.clock.advance(10 * UNPLACED_TIMEOUT_MS);
    await runPasses(testFleet, 3);
    expect(await phasesIn(testFleet.store)).toEqual(['requested']);
  });

  it('waits if it belongs to the minimum of its pool, which would only request it again', async () => {
    const limits = { ...aPool().limits, min: 1 };
    const testFleet = aTestFleet(settings({ limits }));
    await runPasses(testFleet, 2);
    await testFleet.clock.advance(10 * UNPLACED_TIMEOUT_MS);
    await runPasses(testFleet, 3);
    expect(await phasesIn(testFleet.store)).toEqual(['requested']);
  });

  it('waits while its region cannot be read', async () => {
    const testFleet = aTestFleet(settings());
    const { hypervisor, fleet, store } = testFleet;
    hypervisor.view = () => Promise.reject(new Unreachable('PVE_UNREACHABLE', 'no route to host'));
    await fleet.scaleTo('workers', 1, REASON);
    await runPasses(testFleet, 2);
    await testFleet.clock.advance(10 * UNPLACED_TIMEOUT_MS);
    await runPasses(testFleet, 3);
    expect(await phasesIn(store)).toEqual(['requested']);
    expect(await journalReasonsIn(store)).toContain('VIEW_STALE');
  });

  it('waits while only the limit of creations keeps it from its host', async () => {
    const regions = { [REGION]: aRegion({ limits: { createsPerHost: 1 } }) };
    const small = someSettings([aPool()], { unplacedTimeoutMs: 1, regions });
    const testFleet = aTestFleet(small);
    await testFleet.fleet.scaleTo('workers', 6, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(new Set(await phasesIn(testFleet.store))).toEqual(new Set(['ready']));
  });

  it('releases the address of an earlier place when it fails', async () => {
    const testFleet = aTestFleet(settings({ network: STATIC_NETWORK }));
    const { fleet, store, clock } = testFleet;
    const { machines } = await fleet.scaleTo('workers', 1, REASON);
    await onePass(fleet, testFleet);
    const machine = await store.machines.get(machines[0]!);
    const placement = {
      region: REGION,
      host: 'pve1',
      vmId: 1_250,
      name: 'worker-1',
      diskStorage: 'local-lvm',
      addresses: ['10.10.10.12/24'],
    };
    await store.machines.replace(machine!, { ...machine!.value, placement });
    await runPasses(testFleet, 2);
    expect(await addressesInUse(store)).toEqual(['10.10.10.12']);
    await clock.advance(2 * UNPLACED_TIMEOUT_MS);
    await runPasses(testFleet, 2);
    expect(await phasesIn(store)).toEqual(['failed']);
    expect(await addressesInUse(store)).toEqual([]);
  });
});

describe('a requested machine', () => {
  it('fails if its pool is no longer in the config', async () => {
    const testFleet = aTestFleet();
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await testFleet.clock.advance(60_000);
    const fleet = aFleet({ ...testFleet, settings: someSettings([]), seed: 3 });
    await runPasses({ ...testFleet, fleet }, 2);
    expect(await machinesIn(testFleet.store)).toMatchObject([
      { phase: 'failed', failure: { code: 'CONFIG_INVALID' } },
    ]);
  });

  it('is placed before those that were requested after it', async () => {
    const limits = { createsPerHost: 1, createsPerStorage: 1 };
    const testFleet = aTestFleet(
      someSettings(undefined, { regions: { [REGION]: aRegion({ limits }) } }),
    );
    const { fleet, store, clock, hypervisor } = testFleet;
    for (const host of ['pve2', 'pve3']) hypervisor.setOnline(host, false);
    const first = await fleet.request('workers', 1, REASON);
    await clock.advance(10);
    await fleet.request('workers', 1, REASON);
    await runPasses(testFleet, 2);
    const placed = (await machinesIn(store)).filter(({ phase }) => phase !== 'requested');
    expect(placed.map(({ id }) => id)).toEqual(first.machines);
  });
});
