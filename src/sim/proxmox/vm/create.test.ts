// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SimHarness, testCluster } from '../testing/sim-harness.ts';

const IMPORT = 'local-lvm:0,import-from=local:import/noble-with-agent.qcow2';
type Params = Parameters<SimHarness['call']>[2];

function create(harness: SimHarness, params: Params, host = 'pve1') {
  return harness.call('POST', `/nodes/${host}/qemu`, params);
}

describe('creating a VM is refused before the task', () => {
  it.each([
    [
      { scsi0: 'local-lvm:8,import-from=local:import/noble-with-agent.qcow2' },
      400,
      { scsi0: "'import-from' requires special syntax - use <storage ID>:0,import-from=<source>" },
    ],
    [
      { scsi0: 'local-lvm:0,import-from=local:iso/debian.iso' },
      400,
      { scsi0: "local:iso/debian.iso has wrong type 'iso' - needs to be 'images' or 'import'" },
    ],
    [{ scsi0: 'local:8' }, 400, { storage: "storage 'local' does not support vm images" }],
    [
      { ide2: 'local:iso/debian.iso' },
      400,
      { ide2: "explicit 'media=cdrom' is required for iso images" },
    ],
    [{ virtio0: 'local-lvm:8,media=cdrom' }, 400, { virtio0: 'unable to parse drive options' }],
    [{ scsi0: 'nosuch:8' }, 500, "storage 'nosuch' does not exist"],
    [
      { scsi0: 'local-lvm:0,import-from=/root/x.qcow2' },
      500,
      'Only root can pass arbitrary filesystem paths. at /usr/share/perl5/PVE/Storage.pm line 651.',
    ],
    [{ pool: 'nosuch' }, 403, "Permission check failed (pool 'nosuch' does not exist)"],
    [{ args: '-foo' }, 500, "only root can set 'args' config"],
    [{ hookscript: 'local:snippets/x' }, 500, "only root can set 'hookscript' config"],
    [{ serial0: '/dev/ttyS0' }, 500, "only root can set 'serial0' config for real devices"],
    [
      { hostpci0: '0000:01:00.0' },
      500,
      "only root can set 'hostpci0' config for non-mapped devices",
    ],
    [{ sshkeys: 'nonsense' }, 500, 'SSH public key validation error'],
  ])('for %j', async (params, status, problem) => {
    const harness = new SimHarness();
    const response = await create(harness, { vmid: 160, ...params });
    expect(response.status).toBe(status);
    if (typeof problem === 'string') expect(response.reason).toBe(problem);
    else expect(response.errors).toEqual(problem);
    expect(harness.sim.inspect().vms).toEqual([]);
  });

  it('for an id that a VM or container has', async () => {
    const cluster = { ...testCluster(), containers: [{ id: 161, host: 'pve1' }] };
    const harness = new SimHarness({ cluster });
    await harness.createVm(160);
    expect((await create(harness, { vmid: 160 })).reason).toBe(
      "unable to create VM 160 - VM 160 already exists on node 'pve1'",
    );
    expect((await create(harness, { vmid: 161 })).reason).toBe(
      "unable to create VM 161 - CT 161 already exists on node 'pve1'",
    );
  });

  it('on one of two hosts that claim an id at the same time', async () => {
    const harness = new SimHarness({ cluster: testCluster(3) });
    const [first, second] = await Promise.all([
      create(harness, { vmid: 300 }, 'pve1'),
      create(harness, { vmid: 300 }, 'pve3'),
    ]);
    expect([first?.status, second?.reason]).toEqual([
      200,
      "unable to create VM 300 - close (rename) atomic file '/etc/pve/nodes/pve3/qemu-server/300.conf' failed: File exists",
    ]);
  });

  it('without quorum', async () => {
    const harness = new SimHarness();
    harness.sim.externalChanges.setQuorum(false);
    expect((await create(harness, { vmid: 160 })).reason).toBe('cluster not ready - no quorum?');
  });
});

describe('creating a VM fails in the task', () => {
  it.each([
    [
      { scsi0: 'local-lvm:0,import-from=local:import/nosuch.qcow2' },
      "unable to create VM 162 - failed to stat '/var/lib/vz/import/nosuch.qcow2'",
    ],
    [
      { scsi0: 'local-lvm:0,import-from=local:import/chained.qcow2' },
      "unable to create VM 162 - backing file not allowed for untrusted image '/var/lib/vz/import/chained.qcow2'!",
    ],
    [
      { ide2: 'local:iso/x.iso,media=cdrom' },
      "unable to create VM 162 - volume 'local:iso/x.iso' does not exist",
    ],
    [
      { ide0: 'local-lvm:cloudinit', ide1: 'local-lvm:cloudinit' },
      "unable to create VM 162 - ide1 - cloud-init drive is already attached at 'ide0'",
    ],
  ])('for %j', async (params, status) => {
    const harness = new SimHarness();
    const response = await create(harness, { vmid: 162, scsi1: 'local-lvm:1', ...params });
    expect(harness.sim.inspect().vms[0]?.config).toEqual({ lock: 'create' });
    expect(await harness.waitForTask(response)).toBe(status);
    expect(harness.sim.inspect().vms).toEqual([]);
    expect(harness.sim.inspect().volumes.filter(({ vmId }) => vmId !== undefined)).toEqual([]);
  });

  it('on a full file storage, with the cause only in the log', async () => {
    const base = testCluster();
    const storages = base.storages.map((storage) =>
      storage.name === 'shared' ? { ...storage, size: 2 ** 30, used: 2 ** 30 } : storage,
    );
    const harness = new SimHarness({ cluster: { ...base, storages } });
    const scsi0 = IMPORT.replace('local-lvm', 'shared');
    const response = await create(harness, { vmid: 162, scsi0 });
    expect(await harness.waitForTask(response)).toMatch(
      /^unable to create VM 162 - cannot import from 'local:import\/noble-with-agent\.qcow2' - copy failed: command '.*qemu-img convert .*' failed: exit code 1$/,
    );
    const { data } = await harness.call('GET', `/nodes/pve1/tasks/${response.data}/log`);
    expect(data.map(({ t }: { t: string }) => t)).toContain(
      'qemu-img: error while writing at byte 2097152: No space left on device',
    );
    expect(harness.sim.inspect().vms).toEqual([]);
  });

  it('on a disabled storage', async () => {
    const harness = new SimHarness();
    harness.sim.externalChanges.setStorageEnabled('local-lvm', false);
    const response = await create(harness, { vmid: 162, scsi0: 'local-lvm:8' });
    expect(await harness.waitForTask(response)).toBe(
      "unable to create VM 162 - storage 'local-lvm' is disabled",
    );
  });

  it('for tags that the datacenter options do not allow', async () => {
    const base = testCluster();
    const cluster = {
      ...base,
      datacenter: { userTagAccess: { allow: 'list' as const, list: ['free'] } },
      acl: [{ path: '/', role: 'PVEAdmin', user: 'scaler@pve' }],
    };
    const harness = new SimHarness({ cluster });
    const response = await create(harness, { vmid: 162, tags: 'free,other' });
    expect(await harness.waitForTask(response)).toBe(
      "unable to create VM 162 - 403 Permission check failed (/, Sys.Modify for modifying tag 'other')",
    );
    await harness.createVm(163, { tags: 'free' });
  });
});

describe('creating a VM', () => {
  it('claims the id before the response and fills in defaults', async () => {
    const harness = new SimHarness();
    const response = await create(harness, {
      vmid: 170,
      scsi0: IMPORT,
      net0: 'virtio,bridge=vmbr0',
      ide2: 'none,media=cdrom',
    });
    expect(response.data).toMatch(
      /^UPID:pve1:[0-9A-F]{8}:[0-9A-F]{8}:[0-9A-F]{8}:qmcreate:170:scaler@pve!sim:$/,
    );
    expect((await harness.call('GET', '/nodes/pve1/qemu/170/config')).data.lock).toBe('create');
    expect(await harness.waitForTask(response)).toBe('OK');
    const { data } = await harness.call('GET', '/nodes/pve1/qemu/170/config');
    expect(data.boot).toBe('order=scsi0;ide2;net0');
    expect(data.smbios1).toMatch(/^uuid=[0-9a-f-]{36}$/);
    expect(data.vmgenid).toMatch(/^[0-9a-f-]{36}$/);
    expect(data.meta).toMatch(/^creation-qemu=/);
    expect(data.lock).toBeUndefined();
    expect(data.name).toBeUndefined();
    expect((await harness.call('GET', '/nodes/pve1/qemu/170/status/current')).data.name).toBe(
      'VM 170',
    );
  });

  it('keeps the description and uses the disk formats of the storage', async () => {
    const harness = new SimHarness();
    await harness.createVm(171, {
      description: 'Grüße\nzwei = 2; drei',
      scsi0: 'shared:8',
      scsi1: 'shared:1,format=qcow2',
      ide0: 'shared:cloudinit',
      virtio0: 'shared:0,import-from=local:import/noble-with-agent.qcow2',
    });
    const { data } = await harness.call('GET', '/nodes/pve1/qemu/171/config');
    expect(data).toMatchObject({
      description: 'Grüße\nzwei = 2; drei',
      scsi0: 'shared:171/vm-171-disk-0.raw,size=8G',
      scsi1: 'shared:171/vm-171-disk-0.qcow2,size=1G',
      ide0: 'shared:171/vm-171-cloudinit.qcow2,media=cdrom',
      virtio0: 'shared:171/vm-171-disk-1.qcow2,size=3G',
    });
  });

  it('with start=1 starts the VM in a separate task that can fail', async () => {
    const harness = new SimHarness();
    const response = await create(harness, { vmid: 172, start: 1, net0: 'virtio,bridge=vmbr7' });
    expect(await harness.waitForTask(response)).toBe('OK');
    await harness.clock.advance(30_000);
    const { data } = await harness.call('GET', '/nodes/pve1/tasks', { typefilter: 'qmstart' });
    expect(data[0].status).toBe("bridge 'vmbr7' does not exist");
  });

  it('leaves a locked config when the worker is killed', async () => {
    const harness = new SimHarness();
    harness.sim.faults.add({ kind: 'task-killed', taskType: 'qmcreate', delayMs: 600 });
    const response = await create(harness, { vmid: 173, scsi0: 'local-lvm:8' });
    expect(await harness.waitForTask(response)).toBe('unexpected status');
    expect(harness.sim.inspect().vms[0]?.config).toEqual({ lock: 'create' });
    expect(await harness.waitForTask(await harness.call('DELETE', '/nodes/pve1/qemu/173'))).toBe(
      'VM is locked (create)',
    );
    expect((await harness.call('DELETE', '/nodes/pve1/qemu/173', { skiplock: 1 })).errors).toEqual({
      skiplock: 'Only root may use this option.',
    });
  });
});

describe('user-tag-access', () => {
  it.each([
    ['none', 'any', false],
    ['list', 'listed', true],
    ['list', 'used', false],
    ['existing', 'used', true],
    ['existing', 'new', false],
    ['free', 'new', true],
    ['free', 'registered', false],
  ] as const)('with mode %s, tag %s is allowed: %s', async (allow, tag, allowed) => {
    const cluster = {
      ...testCluster(),
      datacenter: { userTagAccess: { allow, list: ['listed'] }, registeredTags: ['registered'] },
      acl: [{ path: '/', role: 'PVEAdmin', user: 'scaler@pve' }],
      vms: [
        { id: 100, host: 'pve1', config: { tags: 'used' } },
        { id: 101, host: 'pve1' },
      ],
    };
    const response = await new SimHarness({ cluster }).call('PUT', '/nodes/pve1/qemu/101/config', {
      tags: tag,
    });
    expect(response.reason).toBe(
      allowed ? 'OK' : `Permission check failed (/, Sys.Modify for modifying tag '${tag}')`,
    );
  });
});

describe('a creation whose worker cannot be started', () => {
  it('answers 500 and leaves the VM with its lock', async () => {
    const harness = new SimHarness();
    harness.sim.faults.add({ kind: 'no-worker', taskType: 'qmcreate' });
    const refused = await harness.call('POST', '/nodes/pve1/qemu', { vmid: 300 });
    expect([refused.status, refused.reason]).toEqual([
      500,
      'got no worker upid - start worker failed',
    ]);
    const { data } = await harness.call('GET', '/nodes/pve1/qemu/300/config');
    expect(data).toMatchObject({ lock: 'create' });
  });
});
