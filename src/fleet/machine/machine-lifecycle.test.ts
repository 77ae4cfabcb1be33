// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Machine } from '../../model/machine.ts';
import { InvalidConfig, NoCapacity, TaskFailed, Unreachable } from '../../ports/errors.ts';
import type { SourceSettings } from '../context/settings.ts';
import {
  aHost,
  aPool,
  aRegion,
  IMAGE_SOURCE,
  REGION,
  STATIC_NETWORK,
  someSettings,
  templateSource,
} from '../testing/settings.ts';
import {
  addressesInUse,
  aFleet,
  aTestFleet,
  leftovers,
  machinesIn,
  onePass,
  untilAtRest,
  WHY,
} from '../testing/test-fleet.ts';

const SOURCES: readonly (readonly [string, SourceSettings])[] = [
  ['image', IMAGE_SOURCE],
  ['full clone', templateSource('full')],
  ['linked clone', templateSource('linked')],
  ['netboot', { kind: 'netboot' }],
];

function poolFrom(source: SourceSettings) {
  const isNetboot = source.kind === 'netboot';
  return aPool({
    source,
    network: STATIC_NETWORK,
    ...(isNetboot && { seed: undefined }),
  });
}

describe.each(SOURCES)('a machine from %s', (_name, source) => {
  it('is made, is ready, and leaves nothing behind', async () => {
    const bench = aTestFleet(someSettings([poolFrom(source)]));
    await bench.fleet.scaleTo('workers', 2, WHY);
    await untilAtRest(bench.fleet, bench);
    const machines = await machinesIn(bench.store);
    expect(machines.map(({ phase }) => phase)).toEqual(['ready', 'ready']);
    expect(leftovers(bench.hypervisor).machines.sort()).toEqual(
      machines.map(({ id }) => id).sort(),
    );
    expect(leftovers(bench.hypervisor).isos).toEqual([]);
    expect(await addressesInUse(bench.store)).toEqual(['10.10.10.11', '10.10.10.12']);
    for (const { placement, id, size } of machines) {
      const vm = bench.hypervisor.state.vms.get(placement?.vmId ?? 0);
      expect(vm?.options.get('smbios1')).toBe(`uuid=${id}`);
      expect(vm?.options.get('cores')).toBe(String(size.cpu));
      expect(vm?.options.get('tags')).toContain('ca-group-workers');
      expect(vm?.options.get('scsi0')).toContain('size=20480M');
    }

    await bench.fleet.scaleTo('workers', 0, WHY);
    await untilAtRest(bench.fleet, bench);
    expect(leftovers(bench.hypervisor)).toEqual({ vms: [], machines: [], isos: [] });
    expect(await addressesInUse(bench.store)).toEqual([]);
    const phases = (await machinesIn(bench.store)).map(({ phase }) => phase);
    expect(phases).toEqual(['gone', 'gone']);
  });
});

describe('a record of an earlier version', () => {
  it('whose task has neither kind nor host is driven on', async () => {
    const settings = someSettings();
    const bench = aTestFleet(settings);
    await bench.fleet.scaleTo('workers', 1, WHY);
    let task: Machine['task'];
    for (let pass = 0; pass < 60 && task === undefined; pass += 1) {
      await onePass(bench.fleet, bench);
      task = (await machinesIn(bench.store))[0]?.task;
    }
    const [seen] = await bench.store.machines.list();
    if (seen === undefined || task === undefined) throw new Error('no task was recorded');
    const { upid, startedAt } = task;
    await bench.store.machines.replace(seen, { ...seen.value, task: { upid, startedAt } });
    const fleet = aFleet({ ...bench, settings, seed: 2 });
    await untilAtRest(fleet, bench);
    expect(await machinesIn(bench.store)).toMatchObject([{ phase: 'ready' }]);
    expect(leftovers(bench.hypervisor).vms).toHaveLength(1);
  });
});

describe('creations', () => {
  it('fetch an image once per host, however many wait for it', async () => {
    const bench = aTestFleet();
    await bench.fleet.scaleTo('workers', 6, WHY);
    await untilAtRest(bench.fleet, bench);
    const downloads = bench.hypervisor.calls.filter(({ method }) => method === 'downloadImage');
    expect(downloads).toHaveLength(3);
    const volumes = [...bench.hypervisor.state.volumes.values()].map(({ id }) => id);
    expect(volumes).toContain('local:import/noble-with-agent-abababababab.qcow2');
  });

  it('queue behind the limits of hosts and storages', async () => {
    const settings = someSettings([aPool({ limits: { ...aPool().limits, min: 0, max: 20 } })], {
      regions: { [REGION]: aRegion({ limits: { createsPerHost: 2, createsPerStorage: 1 } }) },
    });
    const bench = aTestFleet(settings);
    await bench.fleet.scaleTo('workers', 9, WHY);
    let most = 0;
    for (let round = 0; round < 200; round += 1) {
      await onePass(bench.fleet, bench);
      const making = (await machinesIn(bench.store)).filter(({ phase }) =>
        ['placed', 'creating'].includes(phase),
      );
      const hosts = making.map(({ placement }) => placement?.host);
      most = Math.max(most, hosts.length);
      expect(new Set(hosts).size).toBe(hosts.length);
    }
    expect(most).toBe(3);
    expect((await machinesIn(bench.store)).every(({ phase }) => phase === 'ready')).toBe(true);
  });

  it('are given up after the provision timeout, with everything that belongs to them', async () => {
    const pool = aPool({ provisionTimeoutMs: 120_000, network: STATIC_NETWORK });
    const bench = aTestFleet(someSettings([pool]));
    await bench.fleet.scaleTo('workers', 1, WHY);
    // The guest never answers: it is asked before every boot ends.
    bench.hypervisor.onCall = ({ method, vmId }) => {
      const vm = bench.hypervisor.state.vms.get(vmId ?? 0);
      if (method === 'guestIsUp' && vm?.startedAt !== undefined) vm.startedAt += 1_000_000;
    };
    await untilAtRest(bench.fleet, bench);
    const [machine] = await machinesIn(bench.store);
    expect(machine?.phase).toBe('failed');
    expect(machine?.failure).toMatchObject({ code: 'PROVISION_TIMED_OUT', phase: 'booting' });
    expect(leftovers(bench.hypervisor)).toEqual({ vms: [], machines: [], isos: [] });
    expect(await addressesInUse(bench.store)).toEqual([]);
  });

  it('are tried three times, then the pool backs off with the reason', async () => {
    const bench = aTestFleet(
      someSettings([aPool({ limits: { ...aPool().limits, min: 1, max: 5 } })]),
    );
    for (let n = 0; n < 3; n += 1) {
      bench.hypervisor.failNextTask('create', new TaskFailed('TASK_FAILED', 'disk on fire'));
    }
    await untilAtRest(bench.fleet, bench);
    const { pools } = await bench.fleet.status();
    expect(pools[0]?.backoff).toMatchObject({
      failures: 1,
      code: 'TASK_FAILED',
      message: 'disk on fire',
    });
    expect(leftovers(bench.hypervisor).vms).toEqual([]);
    const before = bench.hypervisor.calls.filter(({ method }) => method === 'createVm').length;
    expect(before).toBe(3);
    await bench.clock.advance(61_000);
    await untilAtRest(bench.fleet, bench);
    const after = await bench.fleet.status();
    expect(after.pools[0]).toMatchObject({ ready: 1, target: 1, backoff: undefined });
  });

  it('fail at once where trying again is senseless', async () => {
    const bench = aTestFleet();
    bench.hypervisor.failNext('createVm', new InvalidConfig('PARAMETER_REFUSED', 'no such bridge'));
    await bench.fleet.scaleTo('workers', 1, WHY);
    await untilAtRest(bench.fleet, bench);
    const [machine] = await machinesIn(bench.store);
    expect(machine).toMatchObject({ phase: 'failed', failure: { code: 'PARAMETER_REFUSED' } });
  });

  it('leave to containers what they were given', async () => {
    const bench = aTestFleet();
    for (const [index, host] of ['pve1', 'pve3'].entries()) {
      const known = { power: 'stopped', isTemplate: false, cpus: 1 } as const;
      const memoryBytes = aHost(host).memoryBytes;
      bench.hypervisor.state.containers.push({ vmId: 500 + index, host, memoryBytes, ...known });
    }
    await bench.fleet.scaleTo('workers', 3, WHY);
    await untilAtRest(bench.fleet, bench);
    const machines = await machinesIn(bench.store);
    expect(machines.map(({ placement }) => placement?.host)).toEqual(['pve2', 'pve2', 'pve2']);
  });

  it('wait for room and say so once', async () => {
    const small = aPool({ size: { cpu: 2, memoryBytes: 60 * 2 ** 30, diskBytes: 2 ** 30 } });
    const bench = aTestFleet(someSettings([small]));
    await bench.fleet.scaleTo('workers', 4, WHY);
    for (let round = 0; round < 90; round += 1) await onePass(bench.fleet, bench);
    const machines = await machinesIn(bench.store);
    expect(machines.map(({ phase }) => phase).sort()).toEqual([
      'ready',
      'ready',
      'ready',
      'requested',
    ]);
    const waiting = machines.find(({ phase }) => phase === 'requested');
    const told = await bench.store.journal.read({ machine: waiting?.id ?? '' });
    expect(told.filter(({ reason }) => reason === 'NO_HOST_FITS')).toHaveLength(1);
  });
});

describe('asking', () => {
  it('refuses more than the pool may have, less than it keeps, and unknown pools', async () => {
    const { fleet } = aTestFleet(
      someSettings([aPool({ limits: { ...aPool().limits, min: 1, max: 3 } })]),
    );
    await expect(fleet.scaleTo('workers', 4, WHY)).rejects.toBeInstanceOf(NoCapacity);
    await expect(fleet.scaleTo('workers', 0, WHY)).rejects.toMatchObject({
      code: 'REQUEST_INVALID',
    });
    await expect(fleet.scaleTo('nobody', 1, WHY)).rejects.toMatchObject({ code: 'POOL_NOT_FOUND' });
  });

  it('calls off what was never made without a call to Proxmox', async () => {
    const bench = aTestFleet();
    const { machines } = await bench.fleet.request('workers', 2, WHY);
    await bench.fleet.scaleTo('workers', 0, WHY);
    await untilAtRest(bench.fleet, bench);
    expect((await machinesIn(bench.store)).map(({ phase }) => phase)).toEqual(['gone', 'gone']);
    expect(machines).toHaveLength(2);
    const methods = new Set(bench.hypervisor.calls.map(({ method }) => method));
    expect([...methods].sort()).toEqual(['view', 'volumes']);
  });

  it('keeps the minimum, and not while the region cannot be read', async () => {
    const bench = aTestFleet(
      someSettings([aPool({ limits: { ...aPool().limits, min: 2, max: 3 } })]),
    );
    bench.hypervisor.failNext('view', new Unreachable('PVE_UNREACHABLE', 'nobody answers'));
    const { stale } = await onePass(bench.fleet, bench);
    expect(stale).toEqual({ [REGION]: 'nobody answers' });
    expect(await machinesIn(bench.store)).toEqual([]);
    await untilAtRest(bench.fleet, bench);
    expect(leftovers(bench.hypervisor).vms).toHaveLength(2);
  });

  it('forgets what is over after it has rested', async () => {
    const bench = aTestFleet();
    await bench.fleet.scaleTo('workers', 1, WHY);
    await untilAtRest(bench.fleet, bench);
    await bench.fleet.scaleTo('workers', 0, WHY);
    await untilAtRest(bench.fleet, bench);
    await bench.clock.advance(2 * 3_600_000);
    await onePass(bench.fleet, bench);
    expect(await machinesIn(bench.store)).toEqual([]);
    expect(await bench.store.intents.list()).toEqual([]);
  });
});

describe('machines that fail side by side', () => {
  it('write their pool down one after the other, and each is done in that round', async () => {
    const bench = aTestFleet();
    const refusal = new InvalidConfig('CONFIG_INVALID', 'no such bridge');
    bench.hypervisor.failNext('createVm', refusal);
    bench.hypervisor.failNext('createVm', refusal);
    await bench.fleet.scaleTo('workers', 2, WHY);
    await untilAtRest(bench.fleet, bench);
    expect((await machinesIn(bench.store)).map(({ phase }) => phase)).toEqual(['failed', 'failed']);
    const { pools } = await bench.fleet.status();
    expect(pools[0]?.backoff?.failures).toBe(1);
  });
});

describe('a machine whose VM was taken away', () => {
  it('is over after a while, also when its seed is still there', async () => {
    const bench = aTestFleet(someSettings([aPool({ network: STATIC_NETWORK })]));
    const refusal = new Unreachable('PVE_UNREACHABLE', 'nobody answers');
    for (let n = 0; n < 3; n += 1) bench.hypervisor.failNext('deleteVolume', refusal);
    bench.hypervisor.onCall = ({ method }) => {
      if (method === 'deleteVolume') bench.hypervisor.state.vms.delete(1_250);
    };
    await bench.fleet.scaleTo('workers', 1, WHY);
    await untilAtRest(bench.fleet, bench, 30);
    bench.hypervisor.onCall = undefined;
    expect(await machinesIn(bench.store)).toMatchObject([{ phase: 'ready' }]);
    for (let minute = 0; minute < 8; minute += 1) {
      await bench.clock.advance(60_000);
      await onePass(bench.fleet, bench);
    }
    expect(await machinesIn(bench.store)).toMatchObject([{ phase: 'gone' }]);
    expect(leftovers(bench.hypervisor)).toEqual({ vms: [], machines: [], isos: [] });
    expect(await addressesInUse(bench.store)).toEqual([]);
  });

  it('is not over for having been missing twice for a moment', async () => {
    const bench = aTestFleet();
    await bench.fleet.scaleTo('workers', 1, WHY);
    await untilAtRest(bench.fleet, bench);
    const { vms } = bench.hypervisor.state;
    const [vm] = [...vms.values()].filter(({ vmId }) => vmId === 1_250);
    vm?.options.set('name', 'mine');
    for (let time = 0; time < 2; time += 1) {
      vms.delete(1_250);
      await onePass(bench.fleet, bench);
      if (vm !== undefined) vms.set(1_250, vm);
      await onePass(bench.fleet, bench);
      await bench.clock.advance(10 * 60_000);
    }
    expect(await machinesIn(bench.store)).toMatchObject([{ phase: 'ready' }]);
  });
});
