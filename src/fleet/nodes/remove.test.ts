// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aClusterNode } from '../../ports/fakes/sample-cluster.ts';
import {
  aJoiningMachine,
  aJoiningTestFleet,
  aReadyMachine,
  joiningSettings,
} from '../testing/joining-test-fleet.ts';
import {
  existingResources,
  phasesIn,
  REASON,
  runPasses,
  untilAtRest,
} from '../testing/test-fleet.ts';

const MINUTE_MS = 60_000;

describe('removeNode', () => {
  it('deletes the Node after the VM is gone', async () => {
    const testFleet = aJoiningTestFleet();
    const { placement } = await aReadyMachine(testFleet);
    const order: string[] = [];
    testFleet.cluster.onCall = ({ method }) => {
      if (method === 'deleteNode')
        order.push(`VMs left: ${existingResources(testFleet.hypervisor).vms.length}`);
    };
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(order).toEqual(['VMs left: 0']);
    expect(testFleet.cluster.state.nodes.has(placement.name)).toBe(false);
  });

  it('leaves the Node to the cloud controller manager if there is one', async () => {
    const testFleet = aJoiningTestFleet(joiningSettings({ cloudController: true }));
    const { placement } = await aReadyMachine(testFleet);
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    await testFleet.clock.advance(10 * 60_000);
    await runPasses(testFleet, 3);
    expect(testFleet.cluster.state.nodes.has(placement.name)).toBe(true);
  });

  it('a deletion waits until Kubernetes can be read, then deletes the Node', async () => {
    const testFleet = aJoiningTestFleet();
    await aReadyMachine(testFleet);
    testFleet.cluster.disconnect();
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await runPasses(testFleet, 30);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([]);
    expect(await phasesIn(testFleet.store)).toEqual(['deleting']);
    testFleet.cluster.reconnect();
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
    expect(testFleet.cluster.state.nodes.size).toBe(0);
  });

  it('keeps the Node of a VM whose marker a person has removed, because the VM still runs', async () => {
    const testFleet = aJoiningTestFleet();
    const { placement } = await aReadyMachine(testFleet);
    const vm = testFleet.hypervisor.state.vms.get(placement.vmId);
    vm?.options.set('description', 'edited by a person');
    vm?.options.set('name', 'renamed-by-a-person');
    await runPasses(testFleet, 3);
    await testFleet.clock.advance(6 * MINUTE_MS);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([placement.vmId]);
    expect(testFleet.cluster.state.nodes.get(placement.name)?.ready).toBe(true);
  });

  it('deletes the Node of a VM that was converted to a template, because it never runs again', async () => {
    const testFleet = aJoiningTestFleet();
    const { placement } = await aReadyMachine(testFleet);
    const vm = testFleet.hypervisor.state.vms.get(placement.vmId);
    vm?.options.set('template', '1');
    if (vm !== undefined) vm.startedAt = undefined;
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(testFleet.hypervisor.state.vms.has(placement.vmId)).toBe(true);
    expect(testFleet.cluster.state.nodes.size).toBe(0);
  });

  it('a deletion of a machine whose Node was never seen waits until Kubernetes can be read', async () => {
    const testFleet = aJoiningTestFleet();
    const { id } = await aJoiningMachine(testFleet);
    testFleet.cluster.disconnect();
    await testFleet.clock.advance(2 * MINUTE_MS);
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await runPasses(testFleet, 30);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([]);
    expect(await phasesIn(testFleet.store)).toEqual(['deleting']);
    const recorded = await testFleet.store.journal.read();
    expect(
      recorded.filter(({ message }) => message.startsWith('its Node is removed when')),
    ).toMatchObject([
      { kind: 'saw', subject: { pool: 'workers', machine: id }, reason: 'ViewStale' },
    ]);
    testFleet.cluster.reconnect();
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('a deletion of a machine that was never started does not wait for Kubernetes', async () => {
    const testFleet = aJoiningTestFleet();
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    while ((await phasesIn(testFleet.store))[0] !== 'creating') await runPasses(testFleet, 1);
    testFleet.cluster.disconnect();
    await testFleet.clock.advance(2 * MINUTE_MS);
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await runPasses(testFleet, 30);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it.each([
    ['keeps it if it is Ready and reports no SMBIOS UUID', { systemUuid: '', ready: true }, true],
    ['deletes it if it is NotReady', { systemUuid: '', ready: false }, false],
    ["deletes it if it has the machine's SMBIOS UUID", { ready: true }, false],
  ])(
    'a Node of the same name registers during the deletion: %s',
    async (_what, overrides, isKept) => {
      const testFleet = aJoiningTestFleet();
      const { id, placement } = await aReadyMachine(testFleet);
      const { cluster, clock, fleet, hypervisor, store } = testFleet;
      hypervisor.onCall = ({ method }) => {
        if (method !== 'destroyVm') return;
        cluster.state.removeNode(placement.name);
        cluster.state.putNode(
          aClusterNode({
            name: placement.name,
            uid: 'new',
            systemUuid: id,
            createdAt: clock.now(),
            ...overrides,
          }),
        );
      };
      await fleet.scaleTo('workers', 0, REASON);
      await untilAtRest(fleet, { store, clock });
      expect(await phasesIn(store)).toEqual(['gone']);
      expect(cluster.state.nodes.has(placement.name)).toBe(isKept);
    },
  );
});
