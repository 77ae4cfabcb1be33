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

describe('resize', () => {
  it.each([
    [{ disk: 'scsi0', size: '+2G' }, 'OK', '10G'],
    [{ disk: 'scsi0', size: '16G' }, 'OK', '16G'],
    [{ disk: 'scsi0', size: '1G' }, 'shrinking disks is not supported', '8G'],
    [{ disk: 'scsi5', size: '1G' }, "disk 'scsi5' does not exist", '8G'],
  ])('%j ends with %s', async (params, status, size) => {
    const harness = await withVm();
    expect(await harness.waitForTask(await harness.call('PUT', `${PATH}/resize`, params))).toBe(
      status,
    );
    expect((await harness.call('GET', `${PATH}/config`)).data.scsi0).toBe(
      `local-lvm:vm-100-disk-0,size=${size}`,
    );
  });
});

describe('move_disk', () => {
  it('moves a disk to another storage of the host', async () => {
    const harness = new SimHarness();
    await harness.createVm(150, { scsi0: 'local-lvm:1' });
    const move = (params: Params) => harness.call('POST', '/nodes/pve1/qemu/150/move_disk', params);
    expect((await move({ disk: 'scsi9', storage: 'shared' })).reason).toBe(
      "disk 'scsi9' does not exist",
    );
    expect((await move({ disk: 'scsi0', storage: 'local' })).errors).toEqual({
      storage: "storage 'local' does not support vm images",
    });
    expect((await move({ disk: 'scsi0' })).errors).toEqual({
      storage: "both 'storage' and 'target-vmid' missing, either needs to be set",
      'target-vmid': "both 'storage' and 'target-vmid' missing, either needs to be set",
    });
    expect(
      await harness.waitForTask(await move({ disk: 'scsi0', storage: 'shared', delete: 1 })),
    ).toBe('OK');
    expect((await harness.call('GET', '/nodes/pve1/qemu/150/config')).data.scsi0).toBe(
      'shared:150/vm-150-disk-0.raw,size=1G',
    );
  });
});
