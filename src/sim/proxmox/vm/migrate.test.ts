// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SimHarness, testCluster } from '../testing/sim-harness.ts';

type Params = Parameters<SimHarness['call']>[2];

describe('migration', () => {
  it('moves a stopped VM with its local disks and refuses invalid requests', async () => {
    const harness = new SimHarness({ cluster: testCluster(2) });
    await harness.createVm(150, { scsi0: 'local-lvm:1' });
    const move = (params: Params) => harness.call('POST', '/nodes/pve1/qemu/150/migrate', params);
    expect((await move({ target: 'pve1' })).errors).toEqual({ target: 'target is local node.' });
    expect((await move({ target: 'pve9' })).reason).toBe("no such cluster node 'pve9'");
    expect((await move({ target: 'pve2', force: 1 })).errors).toEqual({
      force: 'Only root may use this option.',
    });
    harness.sim.externalChanges.start(150);
    expect((await move({ target: 'pve2' })).reason).toBe(
      "can't migrate running VM without --online",
    );
    harness.sim.externalChanges.stop(150);
    expect(await harness.waitForTask(await move({ target: 'pve2' }))).toBe('OK');
    expect((await harness.call('GET', '/nodes/pve1/qemu/150/config')).reason).toBe(
      "Configuration file 'nodes/pve1/qemu-server/150.conf' does not exist",
    );
    expect((await harness.call('GET', '/nodes/pve2/qemu/150/config')).status).toBe(200);
  });
});
