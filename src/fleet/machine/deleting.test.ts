// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  aTestFleet,
  existingResources,
  machinesIn,
  onePass,
  REASON,
  reachPhase,
  untilAtRest,
} from '../testing/test-fleet.ts';

describe('deleting: a VM or host that changes during the deletion', () => {
  it('does not destroy an unmanaged VM that got the VM id while the seed was being deleted', async () => {
    const testFleet = aTestFleet();
    const { placement } = await reachPhase(testFleet, 'booting');
    const { vmId = 0, host = '' } = placement ?? {};
    testFleet.hypervisor.onCall = ({ method }) => {
      if (method !== 'deleteVolume') return;
      testFleet.hypervisor.onCall = undefined;
      const options = new Map([['name', 'a-persons']]);
      testFleet.hypervisor.state.vms.set(vmId, {
        vmId,
        host,
        options,
        revision: 1,
        startedAt: undefined,
      });
    };
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(testFleet.hypervisor.onCall).toBeUndefined();
    expect(existingResources(testFleet.hypervisor)).toMatchObject({
      vms: [vmId],
      machines: ['none'],
      isos: [],
    });
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'gone' }]);
  });

  it('follows a VM that HA moved away from a host that went offline during a task', async () => {
    const testFleet = aTestFleet();
    const { placement } = await reachPhase(testFleet, 'ready');
    const { vmId = 0, host = '' } = placement ?? {};
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    while ((await machinesIn(testFleet.store))[0]?.task === undefined) {
      await onePass(testFleet.fleet, testFleet);
    }
    testFleet.hypervisor.setOnline(host, false);
    testFleet.hypervisor.move(vmId, 'pve3');
    const vm = testFleet.hypervisor.state.vms.get(vmId);
    if (vm !== undefined) vm.startedAt = testFleet.clock.monotonic();
    await untilAtRest(testFleet.fleet, testFleet, 200);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'gone' }]);
    expect(existingResources(testFleet.hypervisor)).toMatchObject({ vms: [], isos: [] });
  });

  it('ends when the host was removed from the Proxmox cluster together with its tasks and VMs', async () => {
    const testFleet = aTestFleet();
    await reachPhase(testFleet, 'ready');
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    while ((await machinesIn(testFleet.store))[0]?.task === undefined) {
      await onePass(testFleet.fleet, testFleet);
    }
    const [{ placement } = { placement: undefined }] = await machinesIn(testFleet.store);
    const { vmId = 0, host = '' } = placement ?? {};
    testFleet.hypervisor.state.vms.delete(vmId);
    const at = testFleet.hypervisor.state.hosts.findIndex(({ name }) => name === host);
    testFleet.hypervisor.state.hosts.splice(at, 1);
    await untilAtRest(testFleet.fleet, testFleet, 200);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'gone' }]);
  });
});
