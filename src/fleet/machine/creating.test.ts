// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { NoCapacity, NotFound } from '../../ports/errors.ts';
import type { SourceSettings } from '../context/settings.ts';
import {
  aPool,
  aRegion,
  IMAGE_SOURCE,
  REGION,
  someSettings,
  templateSource,
} from '../testing/settings.ts';
import {
  anUnrecordedClone,
  aTestFleet,
  existingResources,
  journalReasonsIn,
  machinesIn,
  phasesIn,
  REASON,
  reachPhase,
  replaceVm,
  runPasses,
  untilAtRest,
} from '../testing/test-fleet.ts';

describe('creating: a clone call whose response was lost', () => {
  it('is not repeated while a clone of the template is running that no record names', async () => {
    const testFleet = aTestFleet(someSettings([aPool({ source: templateSource() })]));
    const { hypervisor, fleet, store } = testFleet;
    const { end } = await anUnrecordedClone(testFleet);
    const clones = () => hypervisor.calls.filter(({ method }) => method === 'cloneVm');
    await runPasses(testFleet, 10);
    expect(clones()).toHaveLength(1);
    expect(await phasesIn(store)).toEqual(['creating']);
    end();
    await untilAtRest(fleet, testFleet);
    expect(clones()).toHaveLength(2);
    expect(await phasesIn(store)).toEqual(['ready']);
  });
});

describe('creating: what is sent to Proxmox', () => {
  /** The orders of the first machine of a pool with this source. */
  async function ordersOf(source: SourceSettings, region: Parameters<typeof aRegion>[0] = {}) {
    const regions = { [REGION]: aRegion(region) };
    const testFleet = aTestFleet(someSettings([aPool({ source })], { regions }));
    const { hypervisor } = testFleet;
    const orders: unknown[] = [];
    const create = hypervisor.createVm.bind(hypervisor);
    hypervisor.createVm = (order, options) => {
      orders.push(order);
      return create(order, options);
    };
    const clone = hypervisor.cloneVm.bind(hypervisor);
    hypervisor.cloneVm = (order, options) => {
      orders.push(order);
      return clone(order, options);
    };
    await reachPhase(testFleet, 'ready');
    return orders[0] as Record<string, unknown>;
  }

  it('a full clone has the storage of its disks, a linked clone has not', async () => {
    expect(await ordersOf(templateSource('full'))).toMatchObject({
      linked: false,
      storage: 'local-lvm',
    });
    const linked = await ordersOf(templateSource('linked'));
    expect(linked['linked']).toBe(true);
    expect(linked).not.toHaveProperty('storage');
  });

  it.each([IMAGE_SOURCE, templateSource()])(
    'a VM from $kind is put into the resource pool of its region, if there is one',
    async (source) => {
      expect(await ordersOf(source, { resourcePool: 'k8s' })).toMatchObject({
        resourcePool: 'k8s',
      });
      expect(await ordersOf(source)).not.toHaveProperty('resourcePool');
    },
  );

  it('a VM for netboot has an empty disk', async () => {
    const order = await ordersOf({ kind: 'netboot' });
    expect(order['disk']).not.toHaveProperty('importFrom');
  });
});

describe('creating: a VM that is not there after its task', () => {
  it('fails the machine if it is gone', async () => {
    const testFleet = aTestFleet();
    const { hypervisor, store, fleet } = testFleet;
    let isDeleted = false;
    hypervisor.onCall = ({ method }) => {
      if (method !== 'vmConfig' || isDeleted) return;
      isDeleted = hypervisor.state.vms.delete(1_250);
    };
    await fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(fleet, testFleet);
    const message = 'VM 1250 was created and is gone again';
    expect(await machinesIn(store)).toMatchObject([
      { phase: 'failed', failure: { code: 'VM_NOT_FOUND', message } },
    ]);
  });

  it('is left alone, and the machine gets another id, if a person put another VM in its place', async () => {
    const testFleet = aTestFleet();
    const { hypervisor } = testFleet;
    let isReplaced = false;
    hypervisor.onCall = ({ method, vmId = 0, host = '' }) => {
      if (method !== 'vmConfig' || isReplaced || !hypervisor.state.vms.has(vmId)) return;
      isReplaced = vmId === 1_250 && replaceVm(testFleet, { vmId, host }) !== undefined;
    };
    const machine = await reachPhase(testFleet, 'ready');
    expect(machine.placement?.vmId).toBe(1_251);
    expect(hypervisor.state.vms.get(1_250)?.options.get('name')).toBe('a-persons');
    const calls = hypervisor.calls.filter(({ method }) => method === 'createVm');
    expect(calls.map(({ vmId }) => vmId)).toEqual([1_250, 1_251]);
  });

  it('is used if it appears between the look-up and the repeated call', async () => {
    const testFleet = aTestFleet();
    const { hypervisor } = testFleet;
    hypervisor.dropResponse('createVm');
    hypervisor.failNext('vmConfig', new NotFound('VM_NOT_FOUND', 'VM 1250 does not exist'));
    const machine = await reachPhase(testFleet, 'ready');
    const calls = hypervisor.calls.filter(({ method }) => method === 'createVm');
    expect(calls.map(({ vmId }) => vmId)).toEqual([1_250, 1_250]);
    expect(machine.placement?.vmId).toBe(1_250);
    expect(existingResources(hypervisor).vms).toEqual([1_250]);
    expect(await journalReasonsIn(testFleet.store)).not.toContain('VmIdLost');
  });

  it('is not placed elsewhere while a VM remains of a creation that found no space', async () => {
    const testFleet = aTestFleet();
    const { hypervisor, store, fleet } = testFleet;
    hypervisor.failNextTask('create', new NoCapacity('NO_STORAGE_SPACE', 'no space left'));
    let isPut = false;
    hypervisor.onCall = ({ method, vmId = 0, host = '' }) => {
      if (method !== 'vmConfig' || isPut) return;
      isPut = replaceVm(testFleet, { vmId, host }) !== undefined;
    };
    await fleet.scaleTo('workers', 1, REASON);
    await runPasses(testFleet, 10);
    expect(isPut).toBe(true);
    expect(await journalReasonsIn(store)).not.toContain('StorageFull');
  });
});
