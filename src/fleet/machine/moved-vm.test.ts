// SPDX-License-Identifier: Apache-2.0
// What people and HA do between two calls: a VM id that changes hands, a VM that leaves a host for good, a host that
// is taken out of its cluster.
import { describe, expect, it } from 'vitest';
import type { Machine, Phase } from '../../model/machine.ts';
import { Unauthorized } from '../../ports/errors.ts';
import {
  aTestFleet,
  leftovers,
  machinesIn,
  onePass,
  type TestFleet,
  untilAtRest,
  WHY,
} from '../testing/test-fleet.ts';

async function aMachine(bench: TestFleet, phase: Phase): Promise<Machine> {
  await bench.fleet.scaleTo('workers', 1, WHY);
  for (let round = 0; round < 60; round += 1) {
    const [machine] = await machinesIn(bench.store);
    if (machine?.phase === phase) return machine;
    await onePass(bench.fleet, bench);
  }
  throw new Error(`no machine has become ${phase}`);
}

describe('a VM id that changes hands', () => {
  it('while the seed is being deleted: the new VM is left alone', async () => {
    const bench = aTestFleet();
    const { placement } = await aMachine(bench, 'booting');
    const { vmId = 0, host = '' } = placement ?? {};
    bench.hypervisor.onCall = ({ method }) => {
      if (method !== 'deleteVolume') return;
      bench.hypervisor.onCall = undefined;
      const options = new Map([['name', 'a-persons']]);
      bench.hypervisor.state.vms.set(vmId, {
        vmId,
        host,
        options,
        revision: 1,
        startedAt: undefined,
      });
    };
    await bench.fleet.scaleTo('workers', 0, WHY);
    await untilAtRest(bench.fleet, bench);
    expect(bench.hypervisor.onCall).toBeUndefined();
    expect(leftovers(bench.hypervisor)).toMatchObject({
      vms: [vmId],
      machines: ['none'],
      isos: [],
    });
    expect(await machinesIn(bench.store)).toMatchObject([{ phase: 'gone' }]);
  });
});

describe('a host that is gone', () => {
  it('with a task of ours: a VM that HA has moved is followed to its new host', async () => {
    const bench = aTestFleet();
    const { placement } = await aMachine(bench, 'ready');
    const { vmId = 0, host = '' } = placement ?? {};
    await bench.fleet.scaleTo('workers', 0, WHY);
    while ((await machinesIn(bench.store))[0]?.task === undefined) {
      await onePass(bench.fleet, bench);
    }
    bench.hypervisor.setOnline(host, false);
    bench.hypervisor.move(vmId, 'pve3');
    const vm = bench.hypervisor.state.vms.get(vmId);
    if (vm !== undefined) vm.startedAt = bench.clock.monotonic();
    await untilAtRest(bench.fleet, bench, 200);
    expect(await machinesIn(bench.store)).toMatchObject([{ phase: 'gone' }]);
    expect(leftovers(bench.hypervisor)).toMatchObject({ vms: [], isos: [] });
  });

  it('for good, with its tasks and its VMs: the machine ends', async () => {
    const bench = aTestFleet();
    await aMachine(bench, 'ready');
    await bench.fleet.scaleTo('workers', 0, WHY);
    while ((await machinesIn(bench.store))[0]?.task === undefined) {
      await onePass(bench.fleet, bench);
    }
    const [{ placement } = { placement: undefined }] = await machinesIn(bench.store);
    const { vmId = 0, host = '' } = placement ?? {};
    bench.hypervisor.state.vms.delete(vmId);
    const at = bench.hypervisor.state.hosts.findIndex(({ name }) => name === host);
    bench.hypervisor.state.hosts.splice(at, 1);
    await untilAtRest(bench.fleet, bench, 200);
    expect(await machinesIn(bench.store)).toMatchObject([{ phase: 'gone' }]);
  });
});

describe('credentials that are refused for a moment', () => {
  it('cost no machine its life: a host that restarts its cluster file system refuses everybody', async () => {
    const bench = aTestFleet();
    const { id } = await aMachine(bench, 'creating');
    const refusal = new Unauthorized('CREDENTIALS_REFUSED', 'Authentication failed!');
    for (const method of ['task', 'vmConfig', 'growBootDisk', 'uploadIso', 'vmState'] as const) {
      bench.hypervisor.failNext(method, refusal);
    }
    await untilAtRest(bench.fleet, bench);
    expect(await machinesIn(bench.store)).toMatchObject([{ id, phase: 'ready' }]);
  });
});
