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
  const response = await harness.call('POST', '/nodes/pve1/qemu/171/template');
  expect(await harness.waitForTask(response)).toBe('OK');
  return harness;
}

function clone(harness: SimHarness, params: Params, id = 171) {
  return harness.call('POST', `/nodes/pve1/qemu/${id}/clone`, params);
}

describe('cloning', () => {
  it('creates a linked clone of a template by default and copies all but the identity', async () => {
    const harness = await withTemplate('shared');
    const response = await clone(harness, { newid: 181 });
    expect(response.data).toContain(':qmclone:171:');
    expect(await harness.waitForTask(response)).toBe('OK');
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

  it('refuses missing VMs and linked clones of VMs that are no templates', async () => {
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

  it('clones to another host when all storage is shared', async () => {
    const harness = await withTemplate('shared');
    expect(await harness.waitForTask(await clone(harness, { newid: 181, target: 'pve3' }))).toBe(
      'OK',
    );
    expect(harness.sim.inspect().vms.find(({ id }) => id === 181)?.host).toBe('pve3');
  });

  it('shows a locked VM without a name while it runs, and no VM after a failure', async () => {
    const harness = await withTemplate();
    const cloneResponse = await clone(harness, { newid: 181, full: 1, name: 'x' });
    await harness.clock.advance(1000);
    expect((await harness.call('GET', '/nodes/pve1/qemu/181/config')).data).toEqual({
      digest: expect.any(String),
      lock: 'clone',
      description: ' qmclone temporary file',
    });
    await harness.waitForTask(cloneResponse);
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

  it('shows name and description, still locked, once the first disk is copied', async () => {
    const harness = await withTemplate();
    await harness.createVm(172, { scsi0: 'local-lvm:1', scsi1: 'local-lvm:8' });
    const cloneResponse = await clone(
      harness,
      { newid: 181, full: 1, name: 'x', description: 'y' },
      172,
    );
    const config = () => harness.sim.inspect().vms.find(({ id }) => id === 181)?.config;
    while (config()?.['scsi0'] === undefined) await harness.clock.advance(100);
    expect(config()).toMatchObject({ lock: 'clone', name: 'x', description: 'y' });
    expect(config()).not.toHaveProperty('scsi1');
    await harness.waitForTask(cloneResponse);
    expect(config()).toHaveProperty('scsi1');
    expect(config()).not.toHaveProperty('lock');
  });

  it('runs ten clones of a template concurrently, but accepts each id once', async () => {
    const harness = await withTemplate();
    const responses = await Promise.all(
      Array.from({ length: 10 }, (_, index) => clone(harness, { newid: 200 + index })),
    );
    for (const response of responses) expect(await harness.waitForTask(response)).toBe('OK');
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

  it('of a running VM holds the VM lock exclusively', async () => {
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

describe('clones to one id in parallel', () => {
  it('succeed once; the others are refused, or end as failed tasks, and leave nothing', async () => {
    const harness = await withTemplate();
    const sent = await Promise.all([1, 2, 3, 4].map(() => clone(harness, { newid: 181, full: 1 })));
    const accepted = sent.filter(({ status }) => status === 200);
    const ends = await Promise.all(accepted.map((response) => harness.waitForTask(response)));
    expect(accepted.length).toBeGreaterThan(1);
    expect(ends.filter((end) => end === 'OK')).toHaveLength(1);
    for (const end of ends.filter((each) => each !== 'OK'))
      expect(end).toMatch(/already exists|File exists|can't lock file/);
    expect((await clone(harness, { newid: 181, full: 1 })).status).toBe(500);
    const { data } = await harness.call('GET', '/nodes/pve1/storage/local-lvm/content');
    const volumes = data.filter(({ vmid }: { vmid: number }) => vmid === 181);
    expect(volumes).toHaveLength(1);
  });
});
