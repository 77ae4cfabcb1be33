// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SimHarness } from '../testing/sim-harness.ts';

describe('saved state', () => {
  it('restores VMs, volumes, pools, tasks and running guests', async () => {
    const harness = new SimHarness();
    await harness.createVm(100, {
      name: 'kept',
      scsi0: 'local-lvm:0,import-from=local:import/noble-with-agent.qcow2',
      agent: 1,
    });
    const start = await harness.call('POST', '/nodes/pve1/qemu/100/status/start');
    await harness.waitForTask(start);
    await harness.call('POST', '/pools', { poolid: 'kept' });
    const saved = JSON.parse(JSON.stringify(harness.sim.saveState()));
    const other = new SimHarness();
    other.sim.loadState(saved);
    expect(other.sim.inspect().vms).toEqual(harness.sim.inspect().vms);
    expect(other.sim.inspect().volumes).toEqual(harness.sim.inspect().volumes);
    expect((await other.call('GET', '/pools')).data).toEqual([{ poolid: 'kept' }]);
    expect(
      (await other.call('GET', `/nodes/pve1/tasks/${start.data}/status`)).data.exitstatus,
    ).toBe('OK');
    await other.clock.advance(120_000);
    expect((await other.call('POST', '/nodes/pve1/qemu/100/agent/ping')).status).toBe(200);
  });

  it('restores the roles of the saved state only', async () => {
    const harness = new SimHarness();
    const roles = async () =>
      (await harness.call('GET', '/access/roles')).data.map(
        (role: { roleid: string }) => role.roleid,
      );
    const before = await roles();
    const saved = harness.sim.saveState();
    await harness.call('POST', '/access/roles', { roleid: 'Later', privs: 'VM.Audit' });
    harness.sim.loadState(saved);
    expect(await roles()).toEqual(before);
  });

  it('keeps the disk of a running guest that boots from another disk than the first', async () => {
    const harness = new SimHarness();
    const image = 'local-lvm:0,import-from=local:import/noble-with-agent.qcow2';
    await harness.createVm(100, {
      scsi0: 'local-lvm:1',
      scsi1: image,
      boot: 'order=scsi1',
      agent: 1,
    });
    await harness.waitForTask(await harness.call('POST', '/nodes/pve1/qemu/100/status/start'));
    await harness.clock.advance(60_000);
    const saved = harness.sim.saveState();
    const booted = saved.volumes.filter(({ everBooted }) => everBooted).map(({ name }) => name);
    expect(booted).toEqual([expect.stringContaining('disk-1')]);
  });
});
