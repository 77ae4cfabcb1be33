// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SimHarness, testCluster } from '../testing/sim-harness.ts';

type Params = Parameters<SimHarness['call']>[2];

async function withTemplate(storage = 'local-lvm', hosts = 3): Promise<SimHarness> {
  const harness = new SimHarness({ cluster: testCluster(hosts) });
  await harness.createVm(171, {
    name: 'golden',
    tags: 'gold',
    description: 'from the template',
    scsi0: `${storage}:4`,
    net0: 'virtio=02:00:00:00:00:01,bridge=vmbr0',
  });
  const answer = await harness.call('POST', '/nodes/pve1/qemu/171/template');
  expect(await harness.waitForTask(answer)).toBe('OK');
  return harness;
}

function clone(harness: SimHarness, params: Params, id = 171) {
  return harness.call('POST', `/nodes/pve1/qemu/${id}/clone`, params);
}

describe('cloning', () => {
  it('links to the template by default and takes over all but identity', async () => {
    const harness = await withTemplate('shared');
    const answer = await clone(harness, { newid: 181 });
    expect(answer.data).toContain(':qmclone:171:');
    expect(await harness.waitForTask(answer)).toBe('OK');
    const [source, copy] = await Promise.all(
      [171, 181].map(
        async (id) => (await harness.call('GET', `/nodes/pve1/qemu/${id}/config`)).data,
      ),
    );
    expect(source).toMatchObject({ template: 1, scsi0: 'shared:171/base-171-disk-0.raw,size=4G' });
    expect(copy).toMatchObject({
      name: 'Copy-of-VM-golden',
      tags: 'gold',
      description: 'from the template',
      scsi0: 'shared:171/base-171-disk-0.raw/181/vm-181-disk-0.qcow2,size=4G',
    });
    expect(copy.template).toBeUndefined();
    expect(copy.net0).not.toBe(source.net0);
    expect(copy.smbios1).not.toBe(source.smbios1);
    expect(copy.vmgenid).not.toBe(source.vmgenid);
    expect(await harness.waitForTask(await harness.call('DELETE', '/nodes/pve1/qemu/171'))).toBe(
      "base volume 'shared:171/base-171-disk-0.raw' is still in use by linked cloned",
    );
  });

  it.each([
    [{ newid: 181, storage: 'local-lvm' }, "parameter 'storage' not allowed for linked clones"],
    [{ newid: 181, format: 'raw' }, "parameter 'format' not allowed for linked clones"],
    [{ newid: 171 }, 'unable to create VM 171: config file already exists'],
    [{ newid: 181, target: 'nosuch' }, "no such cluster node 'nosuch'"],
    [{ newid: 181, target: 'pve3' }, "can't clone VM to node 'pve3' (VM uses local storage)"],
    [
      { newid: 181, full: 1, target: 'pve3', storage: 'local-lvm' },
      "can't clone to non-shared storage 'local-lvm'",
    ],
    [{ newid: 181, full: 1, storage: 'nosuch' }, "storage 'nosuch' does not exist"],
    [{ newid: 181, pool: 'nosuch' }, "Permission check failed (pool 'nosuch' does not exist)"],
    [{ newid: 181, snapname: 'nosuch' }, "snapshot 'nosuch' does not exist"],
  ])('refuses %j', async (params, reason) => {
    expect((await clone(await withTemplate(), params)).reason).toBe(reason);
  });

  it('refuses what is not there, and links to plain VMs', async () => {
    const harness = await withTemplate();
    expect((await clone(harness, { newid: 181 }, 999)).reason).toBe(
      "unable to find configuration file for VM 999 on node 'pve1'",
    );
    await harness.createVm(150, { scsi0: 'local-lvm:1' });
    expect((await clone(harness, { newid: 181, full: 0 }, 150)).reason).toBe(
      "Linked clone feature is not supported for 'local-lvm:vm-150-disk-0' (scsi0)",
    );
    expect(
      await harness.waitForTask(
        await clone(harness, { newid: 181, full: 1, storage: 'shared' }, 150),
      ),
    ).toBe('OK');
  });

  it('goes to another host when all storage is shared', async () => {
    const harness = await withTemplate('shared');
    expect(await harness.waitForTask(await clone(harness, { newid: 181, target: 'pve3' }))).toBe(
      'OK',
    );
    expect(harness.sim.inspect().vms.find(({ id }) => id === 181)?.host).toBe('pve3');
  });

  it('shows a nameless, locked VM while it works, and nothing when it failed', async () => {
    const harness = await withTemplate();
    const going = await clone(harness, { newid: 181, full: 1, name: 'x' });
    await harness.clock.advance(1000);
    expect((await harness.call('GET', '/nodes/pve1/qemu/181/config')).data).toEqual({
      digest: expect.any(String),
      lock: 'clone',
      description: ' qmclone temporary file',
    });
    await harness.waitForTask(going);
    harness.sim.faults.add({
      kind: 'task-fails',
      taskType: 'qmclone',
      delayMs: 1000,
      message: 'no space',
    });
    expect(await harness.waitForTask(await clone(harness, { newid: 182, full: 1 }))).toBe(
      'clone failed: no space',
    );
    expect(harness.sim.inspect().vms.some(({ id }) => id === 182)).toBe(false);
    expect(harness.sim.inspect().volumes.some(({ vmId }) => vmId === 182)).toBe(false);
  });

  it('shows what was ordered, still locked, as soon as the first of its disks is copied', async () => {
    const harness = await withTemplate();
    await harness.createVm(172, { scsi0: 'local-lvm:1', scsi1: 'local-lvm:8' });
    const going = await clone(harness, { newid: 181, full: 1, name: 'x', description: 'y' }, 172);
    const config = () => harness.sim.inspect().vms.find(({ id }) => id === 181)?.config;
    while (config()?.['scsi0'] === undefined) await harness.clock.advance(100);
    expect(config()).toMatchObject({ lock: 'clone', name: 'x', description: 'y' });
    expect(config()).not.toHaveProperty('scsi1');
    await harness.waitForTask(going);
    expect(config()).toHaveProperty('scsi1');
    expect(config()).not.toHaveProperty('lock');
  });

  it('ten at once of one template, but one id only once', async () => {
    const harness = await withTemplate();
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => clone(harness, { newid: 200 + index })),
    );
    for (const answer of answers) expect(await harness.waitForTask(answer)).toBe('OK');
    const [first, second] = await Promise.all([
      clone(harness, { newid: 300 }),
      clone(harness, { newid: 300 }),
    ]);
    const ends = [await harness.waitForTask(first), await harness.waitForTask(second)];
    expect(ends.toSorted()).toEqual([
      'OK',
      expect.stringMatching(/config file already exists|can't lock file/),
    ]);
  });

  it('of a running VM holds its lock alone', async () => {
    const harness = new SimHarness();
    await harness.createVm(150, { scsi0: 'local-lvm:4' });
    await harness.waitForTask(await harness.call('POST', '/nodes/pve1/qemu/150/status/start'));
    const first = await clone(harness, { newid: 301, full: 1 }, 150);
    const second = await clone(harness, { newid: 302, full: 1 }, 150);
    expect(await harness.waitForTask(second)).toBe(
      "can't lock file '/var/lock/qemu-server/lock-150.conf' - got timeout",
    );
    expect(await harness.waitForTask(first)).toBe('OK');
  });
});

describe('migration', () => {
  it('moves a VM with its local disks; lists forget it for a moment', async () => {
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

  it('disks move between storages of a host', async () => {
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
