// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Unreachable } from '../../ports/errors.ts';
import type { VmRef } from '../../ports/hypervisor.ts';
import { aPool, REGION, someSettings, templateSource } from '../testing/settings.ts';
import {
  aTestFleet,
  machinesIn,
  phasesIn,
  REASON,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';
import type { TemplateSource } from './templates.ts';

function aCloningFleet(source: Partial<TemplateSource> = {}) {
  const pool = aPool({ source: { ...templateSource(), ...source } as TemplateSource });
  const testFleet = aTestFleet(someSettings([pool]));
  const { hypervisor } = testFleet;
  const cloned: VmRef[] = [];
  const clone = hypervisor.cloneVm.bind(hypervisor);
  hypervisor.cloneVm = (order, options) => {
    cloned.push(order.source);
    return clone(order, options);
  };
  return { ...testFleet, cloned };
}

/** Changes the options of the templates 9001 to 9003, which are on pve1 to pve3. */
function changeTemplate({ hypervisor }: TestFleet, vmId: number, options: Record<string, string>) {
  const template = hypervisor.state.vms.get(vmId)!;
  for (const [name, value] of Object.entries(options)) template.options.set(name, value);
}

describe('the template of a machine', () => {
  it('is the one with the name on its own host', async () => {
    const testFleet = aCloningFleet();
    await testFleet.fleet.scaleTo('workers', 3, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const hosts = (await machinesIn(testFleet.store)).map(({ placement }) => placement?.host);
    expect(testFleet.cloned.map(({ host }) => host).toSorted()).toEqual(hosts.toSorted());
    expect(new Set(testFleet.cloned.map(({ vmId }) => vmId)).size).toBe(3);
  });

  it('is the one with the id, on whose host all machines are placed', async () => {
    const testFleet = aCloningFleet({ id: 9_002, name: undefined });
    await testFleet.fleet.scaleTo('workers', 2, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(testFleet.cloned).toMatchObject([{ vmId: 9_002 }, { vmId: 9_002 }]);
    const hosts = (await machinesIn(testFleet.store)).map(({ placement }) => placement?.host);
    expect(hosts).toEqual(['pve2', 'pve2']);
  });

  it('is the one that the host is configured with', async () => {
    const testFleet = aCloningFleet({
      idByHost: { pve3: 9_003, pve1: 9_999 },
      name: undefined,
    });
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(testFleet.cloned).toMatchObject([{ vmId: 9_003, host: 'pve3' }]);
  });

  it('is cloned from another host if its storage is shared', async () => {
    const testFleet = aCloningFleet({ id: 9_002, name: undefined });
    const { hypervisor } = testFleet;
    const hosts = hypervisor.state.hosts.map((host) => ({
      ...host,
      cpus: host.name === 'pve2' ? 0 : host.cpus,
      memoryBytes: host.name === 'pve2' ? 0 : host.memoryBytes,
      storages: host.storages.map((one) =>
        one.name === 'local-lvm' ? { ...one, shared: true } : one,
      ),
    }));
    hypervisor.state.hosts.splice(0, 3, ...hosts);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(testFleet.cloned).toMatchObject([{ vmId: 9_002, host: 'pve2' }]);
    const [machine] = await machinesIn(testFleet.store);
    expect(machine?.placement?.host).not.toBe('pve2');
  });

  it('is not one on a storage that is not shared with the host of the machine', async () => {
    const testFleet = aCloningFleet();
    const { hypervisor } = testFleet;
    changeTemplate(testFleet, 9_001, { template: '0' });
    changeTemplate(testFleet, 9_003, { scsi0: 'ceph:base-9003-disk-0,size=16G' });
    // The machine can only be on pve1, which shares `ceph` with pve3 and nothing with pve2.
    const hosts = hypervisor.state.hosts.map((host) => {
      const [local] = host.storages.filter(({ name }) => name === 'local-lvm');
      const ceph = { ...local!, name: 'ceph', shared: true };
      return {
        ...host,
        cpus: host.name === 'pve1' ? host.cpus : 0,
        storages: host.name === 'pve2' ? host.storages : [ceph, ...host.storages],
      };
    });
    hypervisor.state.hosts.splice(0, 3, ...hosts);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(testFleet.cloned).toMatchObject([{ vmId: 9_003, host: 'pve3' }]);
    const [machine] = await machinesIn(testFleet.store);
    expect(machine?.placement?.host).toBe('pve1');
  });

  it.each([
    ['is no template', { template: '0' }],
    ['has another name', { name: 'other' }],
    ['has no disk', { scsi0: '' }],
  ])('is not a VM that %s', async (_what, options: Record<string, string>) => {
    const testFleet = aCloningFleet();
    for (const vmId of [9_001, 9_003]) {
      changeTemplate(testFleet, vmId, options);
      if (options['scsi0'] === '') {
        testFleet.hypervisor.state.vms.get(vmId)!.options.delete('scsi0');
      }
    }
    await testFleet.fleet.scaleTo('workers', 2, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(testFleet.cloned).toMatchObject([{ vmId: 9_002 }, { vmId: 9_002 }]);
  });

  it('is read once in five minutes, and again when its summary changes', async () => {
    const testFleet = aCloningFleet();
    const { hypervisor, clock } = testFleet;
    const reads = () =>
      hypervisor.calls.filter(({ method, vmId = 0 }) => method === 'vmConfig' && vmId > 9_000)
        .length;
    await runPasses(testFleet, 3);
    expect(reads()).toBe(3);
    changeTemplate(testFleet, 9_001, { tags: 'changed' });
    await runPasses(testFleet, 2);
    expect(reads()).toBe(4);
    await clock.advance(5 * 60_000 + 1);
    await runPasses(testFleet, 1);
    expect(reads()).toBe(7);
  });

  it('delays the machine while none can be read, and is used once it can be', async () => {
    const testFleet = aCloningFleet();
    const { hypervisor, store, fleet } = testFleet;
    const vmConfig = hypervisor.vmConfig.bind(hypervisor);
    hypervisor.vmConfig = () => Promise.reject(new Unreachable('PVE_UNREACHABLE', 'no answer'));
    await fleet.scaleTo('workers', 1, REASON);
    await runPasses(testFleet, 3);
    expect(await phasesIn(store)).toEqual(['requested']);
    const refusals = (await store.journal.read()).filter(({ kind }) => kind === 'refused');
    expect(refusals).toMatchObject([
      {
        reason: 'VIEW_STALE',
        message: expect.stringMatching(
          /^template VM 900\d on host pve\d cannot be read$/,
        ) as unknown,
      },
    ]);
    hypervisor.vmConfig = vmConfig;
    await untilAtRest(fleet, testFleet);
    expect(await phasesIn(store)).toEqual(['ready']);
    expect((await machinesIn(store))[0]?.placement?.region).toBe(REGION);
  });
});
