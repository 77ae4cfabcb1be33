// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Unreachable } from '../../ports/errors.ts';
import type { SourceSettings } from '../context/settings.ts';
import { aPool, IMAGE_SHA, IMAGE_SOURCE, someSettings } from '../testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  existingResources,
  journalReasonsIn,
  onePass,
  REASON,
  runPasses,
  untilAtRest,
} from '../testing/test-fleet.ts';

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

  it('reads the checksum list when an image is needed, and not to delete machines', async () => {
    let isListed = true;
    const readChecksum = () =>
      isListed
        ? Promise.resolve({ algorithm: 'sha256', hex: IMAGE_SHA } as const)
        : Promise.reject(new Unreachable('IMAGE_CHECKSUM_UNREADABLE', 'no list'));
    const source = { ...IMAGE_SOURCE, checksum: undefined, readChecksum } as SourceSettings;
    const testFleet = aTestFleet(someSettings([aPool({ source })]));
    await testFleet.fleet.scaleTo('workers', 2, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(2);
    isListed = false;
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(0);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await runPasses(testFleet, 3);
    expect(await journalReasonsIn(testFleet.store)).toContain('IMAGE_CHECKSUM_UNREADABLE');
    isListed = true;
    await untilAtRest(testFleet.fleet, testFleet);
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(1);
  });
});

describe('isImagePresent: a storage that all hosts share', () => {
  function aSharingFleet() {
    const testFleet = aTestFleet();
    const { hosts } = testFleet.hypervisor.state;
    const shared = hosts.map((host) => ({
      ...host,
      storages: host.storages.map((one) => (one.name === 'local' ? { ...one, shared: true } : one)),
    }));
    hosts.splice(0, 3, ...shared);
    const downloads = () =>
      testFleet.hypervisor.calls.filter(({ method }) => method === 'downloadImage');
    return { testFleet, downloads };
  }

  it('gets an image once, downloaded by one host for all', async () => {
    const { testFleet, downloads } = aSharingFleet();
    await testFleet.fleet.scaleTo('workers', 6, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(downloads()).toHaveLength(1);
    const { pools } = await testFleet.fleet.status();
    expect(pools[0]).toMatchObject({ ready: 6 });
  });

  it('gets an image once when another process takes over while one host downloads', async () => {
    const { testFleet, downloads } = aSharingFleet();
    await testFleet.fleet.scaleTo('workers', 6, REASON);
    while (downloads().length === 0) await onePass(testFleet.fleet, testFleet);
    const fleet = aFleet({ ...testFleet, settings: someSettings(), seed: 2 });
    await untilAtRest(fleet, testFleet);
    expect(downloads()).toHaveLength(1);
    expect((await fleet.status()).pools[0]).toMatchObject({ ready: 6 });
  });

  it('gets an image from another host when the downloading host goes down', async () => {
    const { testFleet, downloads } = aSharingFleet();
    await testFleet.fleet.scaleTo('workers', 6, REASON);
    while (downloads().length === 0) await onePass(testFleet.fleet, testFleet);
    testFleet.hypervisor.setOnline(downloads()[0]?.host ?? '', false);
    await runPasses(testFleet, 60);
    expect(new Set(downloads().map(({ host }) => host)).size).toBe(2);
    expect((await testFleet.fleet.status()).pools[0]).toMatchObject({ ready: 4 });
  });
});
