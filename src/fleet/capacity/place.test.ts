// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { NotPlaced } from '../../placement/index.ts';
import { aMachine, aMachineId } from '../../ports/fakes/sample-records.ts';
import { aHost, aPool, REGION, STATIC_NETWORK, someSettings } from '../testing/settings.ts';
import {
  addressesInUse,
  aTestFleet,
  machinesIn,
  onePass,
  REASON,
  reachPhase,
  replaceVm,
  runPasses,
  untilAtRest,
} from '../testing/test-fleet.ts';
import { describeHosts } from './place.ts';

describe('describeHosts', () => {
  const excluded = ['pve1', 'pve2', 'pve3', 'pve4'].map((host) => ({
    host,
    reason: 'HostNotAllowed' as const,
    message: `host ${host} is not in hosts.allow of pool small`,
    numbers: {},
  }));
  const unknown = {
    host: 'pve9',
    reason: 'HostUnknown' as const,
    message: 'host pve9 is in hosts.allow of pool small, but Proxmox has no such host',
    numbers: {},
  };

  const notPlaced = (refusals: NotPlaced['refusals'], { message } = refusals[0]!): NotPlaced => ({
    placed: false,
    code: 'HOST_NOT_FOUND',
    message,
    refusals,
  });

  it('leaves out hosts that the config excludes, unless it excludes all', () => {
    expect(describeHosts(notPlaced([...excluded, unknown]))).toBe(unknown.message);
    const offline = { ...unknown, reason: 'HostOffline' as const, message: 'host pve9 is offline' };
    expect(describeHosts(notPlaced([...excluded, offline], offline))).toBe('host pve9 is offline');
    expect(describeHosts(notPlaced(excluded.slice(0, 2)))).toBe(
      'host pve1 is not in hosts.allow of pool small; host pve2 is not in hosts.allow of pool small',
    );
  });
});

describe('place', () => {
  it('releases the address of a machine whose VM id was taken, and chooses another id and address', async () => {
    const testFleet = aTestFleet(someSettings([aPool({ network: STATIC_NETWORK })]));
    const { vms } = testFleet.hypervisor.state;
    testFleet.hypervisor.onCall = ({ method, vmId = 0 }) => {
      if (method !== 'createVm' || vmId !== 1_250 || vms.has(vmId)) return;
      // An unmanaged VM with this id and this address is created first.
      const options = new Map([
        ['name', 'unmanaged'],
        ['ipconfig0', 'ip=10.10.10.11/24'],
      ]);
      vms.set(vmId, { vmId, host: 'pve1', options, revision: 1, startedAt: 0 });
    };
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const [machine] = await machinesIn(testFleet.store);
    expect(machine).toMatchObject({
      phase: 'ready',
      placement: { vmId: 1_251, addresses: ['10.10.10.12/24'] },
    });
    expect(await addressesInUse(testFleet.store)).toEqual(['10.10.10.12']);
    expect(vms.get(1_250)?.options.get('name')).toBe('unmanaged');
  });

  it('chooses another address when another machine has got the same one before the VM is created', async () => {
    const testFleet = aTestFleet(someSettings([aPool({ network: STATIC_NETWORK })]));
    const { store, fleet, clock } = testFleet;
    const placement = { region: REGION, host: 'pve1', diskStorage: 'local-lvm', name: 'w' };
    for (const [index, phase] of (['creating', 'kept'] as const).entries()) {
      const addresses = ['10.10.10.11/24'];
      const machine = aMachine({
        id: aMachineId(index),
        phase,
        phaseSince: clock.now(),
        placement: { ...placement, vmId: 1_250 + index, addresses },
      });
      await store.machines.create(machine.id, machine);
    }
    replaceVm(testFleet, { vmId: 1_251, host: 'pve1' });
    await untilAtRest(fleet, testFleet);
    expect((await store.machines.get(aMachineId(0)))?.value).toMatchObject({
      phase: 'ready',
      placement: { addresses: ['10.10.10.12/24'] },
    });
    const entry = (await store.journal.read()).find(({ reason }) => reason === 'AddressLost');
    expect(entry?.message).toBe('another machine has address 10.10.10.11; choosing another one');
  });

  it('creates one of two machines that have got the last address, and then the other one', async () => {
    const { v4 } = STATIC_NETWORK;
    const ranges = [{ from: '10.10.10.11', to: '10.10.10.11' }];
    const network = { ...STATIC_NETWORK, v4: { ...v4, ranges } };
    const testFleet = aTestFleet(someSettings([aPool({ network })]));
    const { store, clock } = testFleet;
    for (const index of [0, 1]) {
      const machine = aMachine({
        id: aMachineId(index),
        phase: 'creating',
        phaseSince: clock.now(),
        placement: {
          region: REGION,
          host: 'pve1',
          vmId: 1_250 + index,
          name: `worker-${index}`,
          diskStorage: 'local-lvm',
          addresses: ['10.10.10.11/24'],
        },
      });
      await store.machines.create(machine.id, machine);
    }
    await runPasses(testFleet, 60);
    const phases = (await machinesIn(store)).map(({ phase }) => phase);
    expect(phases.toSorted()).toEqual(['ready', 'requested']);
  });

  it('assigns the VM id after the last one, not after the highest one of another user', async () => {
    const testFleet = aTestFleet();
    await reachPhase(testFleet, 'ready');
    replaceVm(testFleet, { vmId: 1_290, host: 'pve1' });
    await testFleet.fleet.scaleTo('workers', 2, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const machines = await machinesIn(testFleet.store);
    expect(machines.map(({ placement }) => placement?.vmId).toSorted()).toEqual([1_250, 1_251]);
  });

  it('counts the memory of containers, also of stopped ones', async () => {
    const testFleet = aTestFleet();
    for (const [index, host] of ['pve1', 'pve3'].entries()) {
      const known = { power: 'stopped', isTemplate: false, cpus: 1 } as const;
      const memoryBytes = aHost(host).memoryBytes;
      testFleet.hypervisor.state.containers.push({
        vmId: 500 + index,
        host,
        memoryBytes,
        ...known,
      });
    }
    await testFleet.fleet.scaleTo('workers', 3, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const machines = await machinesIn(testFleet.store);
    expect(machines.map(({ placement }) => placement?.host)).toEqual(['pve2', 'pve2', 'pve2']);
  });

  it('a machine that no host has capacity for stays requested, and the reason is recorded once', async () => {
    const small = aPool({ size: { cpu: 2, memoryBytes: 60 * 2 ** 30, diskBytes: 2 ** 30 } });
    const testFleet = aTestFleet(someSettings([small]));
    await testFleet.fleet.scaleTo('workers', 4, REASON);
    await runPasses(testFleet, 90);
    const machines = await machinesIn(testFleet.store);
    expect(machines.map(({ phase }) => phase).sort()).toEqual([
      'ready',
      'ready',
      'ready',
      'requested',
    ]);
    const waiting = machines.find(({ phase }) => phase === 'requested');
    const recorded = await testFleet.store.journal.read({ machine: waiting?.id ?? '' });
    expect(recorded.filter(({ reason }) => reason === 'NO_HOST_FITS')).toHaveLength(1);
  });
});

describe('a machine that no host can take', () => {
  it('has a refusal that names every host', async () => {
    const big = { cpu: 64, memoryBytes: 2 ** 40, diskBytes: 2 ** 34 };
    const testFleet = aTestFleet(someSettings([aPool({ size: big })]));
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await onePass(testFleet.fleet, testFleet);
    const entries = await testFleet.store.journal.read({});
    const refusal = entries.find(({ kind }) => kind === 'refused');
    for (const host of ['pve1', 'pve2', 'pve3']) expect(refusal?.message).toContain(`host ${host}`);
  });
});
