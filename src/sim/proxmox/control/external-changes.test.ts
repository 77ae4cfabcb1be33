// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SimHarness, testCluster } from '../testing/sim-harness.ts';

describe('external changes', () => {
  it('rename, retag, migrate, copy, stop and delete VMs', async () => {
    const harness = new SimHarness({ cluster: testCluster(2) });
    await harness.createVm(100, {
      name: 'ours',
      tags: 'ours',
      description: 'marker',
      scsi0: 'local-lvm:1',
      net0: 'virtio,bridge=vmbr0',
    });
    const { externalChanges } = harness.sim;
    externalChanges.copy(100, 500);
    const [ours, copy] = harness.sim.inspect().vms;
    expect(copy?.config).toMatchObject({
      name: 'ours',
      tags: 'ours',
      description: 'marker',
      scsi0: 'local-lvm:vm-500-disk-0,size=1G',
    });
    expect(copy?.config['smbios1']).not.toBe(ours?.config['smbios1']);
    expect(copy?.config['net0']).not.toBe(ours?.config['net0']);
    externalChanges.rename(100, 'theirs');
    externalChanges.retag(100, ['B', 'a']);
    externalChanges.describe(100, 'other');
    externalChanges.migrate(100, 'pve2');
    externalChanges.start(100);
    const { data } = await harness.call('GET', '/nodes/pve2/qemu/100/config');
    expect(data).toMatchObject({ name: 'theirs', tags: 'a;b', description: 'other' });
    externalChanges.stop(100);
    externalChanges.start(100);
    externalChanges.delete(100);
    expect(harness.sim.inspect().vms.map(({ id }) => id)).toEqual([500]);
    expect(harness.sim.inspect().volumes.some(({ vmId }) => vmId === 100)).toBe(false);
    expect(() => externalChanges.rename(100, 'x')).toThrow(
      'VM 100 does not exist in the simulated cluster',
    );
  });

  it('start VMs with onboot when a host comes back', async () => {
    const harness = new SimHarness({ cluster: testCluster(3) });
    await harness.call('POST', '/nodes/pve2/qemu', { vmid: 100, onboot: 1 });
    await harness.call('POST', '/nodes/pve2/qemu', { vmid: 101 });
    await harness.clock.advance(10_000);
    harness.sim.externalChanges.hostDown('pve2');
    harness.sim.externalChanges.hostUp('pve2');
    expect(harness.sim.inspect().vms.map(({ running }) => running)).toEqual([true, false]);
  });

  it('keep the disks of guests when their host loses power', async () => {
    const harness = new SimHarness({ cluster: testCluster(3) });
    await harness.createVm(100, { scsi0: 'local-lvm:1' });
    harness.sim.externalChanges.start(100);
    await harness.clock.advance(10_000);
    harness.sim.externalChanges.hostDown('pve1');
    const { volumes } = harness.sim.saveState();
    expect(volumes.filter(({ vmId }) => vmId === 100)).toMatchObject([{ everBooted: true }]);
  });
});
