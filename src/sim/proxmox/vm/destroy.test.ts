// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SimHarness } from '../testing/sim-harness.ts';

const PATH = '/nodes/pve1/qemu/100';
type Params = Parameters<SimHarness['call']>[2];

async function withVm(params: Params = {}): Promise<SimHarness> {
  const harness = new SimHarness();
  await harness.createVm(100, { scsi0: 'local-lvm:8', net0: 'virtio,bridge=vmbr0', ...params });
  return harness;
}

describe('DELETE /nodes/{node}/qemu/{vmid}', () => {
  it('refuses protected and HA-managed VMs, removes disks and keeps ISOs', async () => {
    const harness = await withVm({ ide2: 'local:iso/debian.iso,media=cdrom', protection: 1 });
    expect((await harness.call('DELETE', PATH)).reason).toBe(
      "can't remove VM 100 - protection mode enabled",
    );
    await harness.call('PUT', `${PATH}/config`, { protection: 0 });
    await harness.call('POST', '/cluster/ha/resources', { sid: 'vm:100' });
    expect((await harness.call('DELETE', PATH)).reason).toBe(
      'unable to remove VM 100 - used in HA resources and purge parameter not set.',
    );
    expect(await harness.waitForTask(await harness.call('DELETE', PATH, { purge: 1 }))).toBe('OK');
    const left = harness.sim.inspect().volumes.map(({ id }) => id);
    expect(left).toContain('local:iso/debian.iso');
    expect(left.some((id) => id.includes('vm-100'))).toBe(false);
    expect((await harness.call('DELETE', PATH)).reason).toBe(
      "Configuration file 'nodes/pve1/qemu-server/100.conf' does not exist",
    );
  });

  it('warns about a disk that it cannot remove and leaves it', async () => {
    const harness = await withVm();
    harness.sim.externalChanges.setStorageActive('local-lvm', false);
    expect(await harness.waitForTask(await harness.call('DELETE', PATH))).toBe('WARNINGS: 1');
    expect(harness.sim.inspect().vms).toEqual([]);
    expect(harness.sim.inspect().volumes.some(({ vmId }) => vmId === 100)).toBe(true);
    harness.sim.externalChanges.setStorageActive('local-lvm', true);
    await harness.createVm(100, { scsi0: 'local-lvm:1' });
    const response = await harness.call('DELETE', PATH, { 'destroy-unreferenced-disks': 1 });
    expect(await harness.waitForTask(response)).toBe('OK');
    expect(harness.sim.inspect().volumes.some(({ vmId }) => vmId === 100)).toBe(false);
  });
});
