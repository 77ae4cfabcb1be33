// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { TaskFailed, Unreachable } from '../../ports/errors.ts';
import type { ImageOrder } from '../../ports/hypervisor.ts';
import type { SourceSettings } from '../context/settings.ts';
import { aPool, IMAGE_SHA, IMAGE_SOURCE, someSettings } from '../testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  existingResources,
  journalReasonsIn,
  onePass,
  phasesIn,
  REASON,
  reachPhase,
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

describe('isImagePresent: what is downloaded', () => {
  async function downloadOf(image: Partial<typeof IMAGE_SOURCE>) {
    const source = { ...IMAGE_SOURCE, ...image } as SourceSettings;
    const testFleet = aTestFleet(someSettings([aPool({ source })]));
    const { hypervisor } = testFleet;
    const orders: ImageOrder[] = [];
    const download = hypervisor.downloadImage.bind(hypervisor);
    hypervisor.downloadImage = (order, options) => {
      orders.push(order);
      return download(order, options);
    };
    const created: unknown[] = [];
    const create = hypervisor.createVm.bind(hypervisor);
    hypervisor.createVm = (order, options) => {
      created.push(order.disk);
      return create(order, options);
    };
    await reachPhase(testFleet, 'ready');
    return { order: orders[0], disk: created[0] };
  }

  it.each([
    ['noble.img', '-abababababab', 'noble-abababababab.qcow2'],
    ['noble.QCOW2', '', 'noble.qcow2'],
    ['a%20b.raw', '', 'a-20b.qcow2'],
    ['noble.img.xz', '', 'noble.img.xz.qcow2'],
    ['', '', 'image.qcow2'],
  ])('%s%s is stored as %s', async (last, digits, fileName) => {
    const checksum = digits === '' ? undefined : ({ algorithm: 'sha256', hex: IMAGE_SHA } as const);
    const { order, disk } = await downloadOf({
      url: `https://images.example/current/${last}`,
      checksum,
    });
    expect(order?.fileName).toBe(fileName);
    expect(order?.checksum).toEqual(checksum);
    expect(disk).toMatchObject({ importFrom: `local:import/${fileName}` });
  });

  it('a download that fails is reported with its error, and repeated', async () => {
    const testFleet = aTestFleet();
    const { hypervisor, store } = testFleet;
    hypervisor.failNextTask('download', new TaskFailed('TASK_FAILED', 'checksum mismatch'));
    await reachPhase(testFleet, 'ready');
    expect(hypervisor.calls.filter(({ method }) => method === 'downloadImage')).toHaveLength(2);
    const messages = (await store.journal.read()).map(({ message }) => message);
    expect(messages).toContain('checksum mismatch');
  });

  it('a download that Proxmox refuses is repeated', async () => {
    const testFleet = aTestFleet();
    const { hypervisor } = testFleet;
    hypervisor.failNext('downloadImage', new TaskFailed('TASK_FAILED', 'no permission'));
    await reachPhase(testFleet, 'ready');
    expect(hypervisor.calls.filter(({ method }) => method === 'downloadImage')).toHaveLength(2);
  });

  it('a download is polled at most twice a second, and the storage is listed before and after it', async () => {
    const testFleet = aTestFleet();
    const { hypervisor, fleet, store, clock } = testFleet;
    await fleet.scaleTo('workers', 1, REASON);
    const lease = { name: 'r', holder: 't', durationMs: 3_600_000 };
    for (let pass = 0; pass < 40; pass += 1) {
      await fleet.reconcileOnce(await store.leases.acquire(lease));
      await clock.advance(100);
      if ((await phasesIn(store))[0] === 'creating') break;
    }
    const counts = Map.groupBy(hypervisor.calls, ({ method }) => method);
    expect(counts.get('task')?.length).toBeLessThanOrEqual(5);
    // One of them lists the seeds.
    expect(counts.get('volumes')?.length).toBe(3);
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

  it('gets an image also while another host does not answer', async () => {
    const { testFleet, downloads } = aSharingFleet();
    const { hypervisor } = testFleet;
    const runningTasks = hypervisor.runningTasks.bind(hypervisor);
    hypervisor.runningTasks = (host, ...rest) =>
      host === 'pve3'
        ? Promise.reject(new Unreachable('PVE_UNREACHABLE', 'no answer'))
        : runningTasks(host, ...rest);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(downloads()).toHaveLength(1);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
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
