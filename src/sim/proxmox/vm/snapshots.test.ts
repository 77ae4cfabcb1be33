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

describe('snapshots', () => {
  it('can be created, listed, rolled back to and deleted', async () => {
    const harness = await withVm({ name: 'one' });
    const path = `${PATH}/snapshot`;
    expect(await harness.waitForTask(await harness.call('POST', path, { snapname: 'first' }))).toBe(
      'OK',
    );
    expect(await harness.waitForTask(await harness.call('POST', path, { snapname: 'first' }))).toBe(
      "snapshot name 'first' already used",
    );
    expect((await harness.call('GET', path)).data.map((row: { name: string }) => row.name)).toEqual(
      ['first', 'current'],
    );
    await harness.call('PUT', `${PATH}/config`, { name: 'two' });
    expect(await harness.waitForTask(await harness.call('POST', `${path}/first/rollback`))).toBe(
      'OK',
    );
    expect((await harness.call('GET', `${PATH}/config`)).data.name).toBe('one');
    expect(await harness.waitForTask(await harness.call('DELETE', `${path}/none`))).toBe(
      "snapshot 'none' does not exist",
    );
    expect(await harness.waitForTask(await harness.call('DELETE', `${path}/first`))).toBe('OK');
  });
});
