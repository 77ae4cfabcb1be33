// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { formatMarker } from '../../model/marker.ts';
import { Unreachable } from '../../ports/errors.ts';
import { aMachineId } from '../../ports/fakes/sample-records.ts';
import { seedFileName } from '../machine/vm-identity.ts';
import { aJoiningTestFleet, aReadyMachine } from '../testing/joining-test-fleet.ts';
import { CLUSTER, REGION, someSettings } from '../testing/settings.ts';
import { aTestFleet, onePass, type TestFleet } from '../testing/test-fleet.ts';

function putVm({ hypervisor }: TestFleet, vmId: number, options: Record<string, string>): void {
  const map = new Map(Object.entries(options));
  hypervisor.state.vms.set(vmId, {
    vmId,
    host: 'pve1',
    options: map,
    revision: 1,
    startedAt: undefined,
  });
}

/** What the report of the next pass counts, without zeros. */
async function counted(testFleet: TestFleet): Promise<Readonly<Record<string, number>>> {
  const { orphans } = await onePass(testFleet.fleet, testFleet);
  expect(new Set(orphans.map(({ region }) => region))).toEqual(new Set([REGION]));
  return Object.fromEntries(
    orphans.filter(({ count }) => count > 0).map(({ kind, count }) => [kind, count]),
  );
}

describe('the orphans in the report of a pass', () => {
  it('are all kinds with zero when there is none', async () => {
    const testFleet = aTestFleet();
    const { orphans } = await onePass(testFleet.fleet, testFleet);
    expect(orphans.map(({ count }) => count)).toEqual([0, 0, 0, 0, 0, 0]);
  });

  it('include VMs that a person has to decide about, until they are gone, and no VM of others', async () => {
    const testFleet = aTestFleet();
    const marker = formatMarker({
      cluster: CLUSTER,
      pool: 'workers',
      machine: aMachineId(3),
      vmId: 1_260,
      createdAtSeconds: 1,
      addresses: [],
    });
    putVm(testFleet, 1_260, { name: 'edited', description: `${marker}\n${marker}` });
    putVm(testFleet, 1_261, { name: 'unmarked', tags: 'pvescaler' });
    putVm(testFleet, 1_262, { name: 'theirs' });
    const found = { 'damaged-marker': 1, 'vm-left-alone': 1 };
    expect(await counted(testFleet)).toEqual(found);
    const { hypervisor, clock } = testFleet;
    await clock.advance(60_000);
    hypervisor.failNext('view', new Unreachable('PVE_UNREACHABLE', 'no route to host'));
    expect(await counted(testFleet)).toEqual(found);
    for (const vmId of [1_260, 1_261]) hypervisor.state.vms.delete(vmId);
    await clock.advance(60_000);
    expect(await counted(testFleet)).toEqual({});
  });

  it('include seeds that are kept, and no removed ones', async () => {
    for (const orphans of ['report', 'delete'] as const) {
      const testFleet = aTestFleet(someSettings(undefined, { orphans }));
      const name = seedFileName(CLUSTER, aMachineId(1));
      const id = testFleet.hypervisor.volumeId({ storage: 'seeds', content: 'iso', name });
      const volume = { id, name, bytes: 1, content: 'iso', storage: 'seeds', host: undefined };
      testFleet.hypervisor.state.volumes.set(id, volume);
      await onePass(testFleet.fleet, testFleet);
      expect(await counted(testFleet)).toEqual(
        orphans === 'report' ? { 'seed-without-machine': 1 } : {},
      );
    }
  });

  it('include Nodes without a VM', async () => {
    const testFleet = aJoiningTestFleet();
    const { id, placement } = await aReadyMachine(testFleet);
    const record = await testFleet.store.machines.get(id);
    await testFleet.store.machines.remove(record!);
    testFleet.hypervisor.state.vms.delete(placement.vmId);
    const [node] = (await testFleet.cluster.view()).nodes;
    testFleet.cluster.state.nodes.set(node!.name, { ...node!, ready: false });
    await testFleet.clock.advance(1_000);
    expect(await counted(testFleet)).toEqual({ 'node-without-vm': 1 });
  });
});
