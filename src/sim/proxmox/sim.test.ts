// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
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
});
