// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { TASK_ARCHIVE_SIZE } from './tasks/engine.ts';
import { SimHarness } from './testing/sim-harness.ts';

describe('a simulated cluster', () => {
  it('creates, starts, shuts down and destroys a VM from an image', async () => {
    const harness = new SimHarness();
    await harness.createVm(120, {
      name: 'worker-1',
      memory: 2048,
      cores: 2,
      agent: 1,
      scsi0: 'local-lvm:0,import-from=local:import/noble-with-agent.qcow2',
      net0: 'virtio,bridge=vmbr0',
      tags: 'B;a,b',
    });
    const { data: config } = await harness.call('GET', '/nodes/pve1/qemu/120/config');
    expect(config).toMatchObject({
      name: 'worker-1',
      memory: '2048',
      cores: 2,
      tags: 'a;b',
      scsi0: 'local-lvm:vm-120-disk-0,size=3G',
      boot: 'order=scsi0;net0',
    });
    expect(config.net0).toMatch(/^virtio=BC:24:11:..:..:..,bridge=vmbr0$/);
    const start = await harness.call('POST', '/nodes/pve1/qemu/120/status/start');
    expect(await harness.waitForTask(start)).toBe('OK');
    await harness.clock.advance(120_000);
    const ping = await harness.call('POST', '/nodes/pve1/qemu/120/agent/ping');
    expect(ping.data).toEqual({ result: {} });
    expect((await harness.call('DELETE', '/nodes/pve1/qemu/120')).reason).toBe(
      'VM 120 is running - destroy failed',
    );
    expect(
      await harness.waitForTask(await harness.call('POST', '/nodes/pve1/qemu/120/status/shutdown')),
    ).toBe('OK');
    expect(
      await harness.waitForTask(await harness.call('DELETE', '/nodes/pve1/qemu/120', { purge: 1 })),
    ).toBe('OK');
    expect(harness.sim.inspect().vms).toEqual([]);
    expect(harness.sim.inspect().volumes.filter(({ vmId }) => vmId !== undefined)).toEqual([]);
    expect(harness.sim.inspect().heldLocks).toEqual([]);
  });

  it('produces the same run from the same seed', async () => {
    const run = async () => {
      const harness = new SimHarness();
      await harness.createVm(100, { net0: 'virtio,bridge=vmbr0', scsi0: 'local-lvm:1' });
      await harness.waitForTask(await harness.call('POST', '/nodes/pve1/qemu/100/status/start'));
      return JSON.stringify([
        harness.sim.inspect().vms,
        (await harness.call('GET', '/cluster/tasks')).body,
      ]);
    };
    expect(await run()).toBe(await run());
  });

  it('keeps a bounded number of ended tasks', async () => {
    const harness = new SimHarness();
    const taskCount = TASK_ARCHIVE_SIZE * 2;
    for (let index = 0; index < taskCount; index += 1) {
      await harness.sim.handle({
        method: 'POST',
        target: '/api2/json/nodes/pve1/qemu/999/status/start',
        headers: { authorization: harness.authorization },
      });
    }
    await harness.clock.advance(10);
    expect(harness.sim.inspect().tasksStarted).toBe(taskCount);
    expect(harness.sim.saveState().tasks.length).toBeLessThanOrEqual(TASK_ARCHIVE_SIZE * 1.25);
    expect(harness.sim.inspect().runningTasks).toEqual([]);
    expect(harness.sim.inspect().heldLocks).toEqual([]);
    expect(harness.clock.sleeping).toBe(0);
  });
});
