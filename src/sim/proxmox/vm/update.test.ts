// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SimHarness, testCluster } from '../testing/sim-harness.ts';

const PATH = '/nodes/pve1/qemu/100';
type Params = Parameters<SimHarness['call']>[2];

async function withVm(
  params: Params = {},
  options: ConstructorParameters<typeof SimHarness>[0] = {},
): Promise<SimHarness> {
  const harness = new SimHarness(options);
  await harness.createVm(100, { scsi0: 'local-lvm:8', net0: 'virtio,bridge=vmbr0', ...params });
  return harness;
}

async function power(harness: SimHarness, what: string, params: Params = {}): Promise<string> {
  return await harness.waitForTask(await harness.call('POST', `${PATH}/status/${what}`, params));
}

describe('changing a configuration', () => {
  it.each([
    [{}, 500, 'no options specified'],
    [{ delete: 'foo' }, 400, { delete: "unknown option 'foo'" }],
    [{ revert: 'foo' }, 400, { revert: "unknown option 'foo'" }],
    [
      { name: 'a', delete: 'name' },
      400,
      { delete: "you can't use '-name' and -delete name' at the same time" },
    ],
    [{ name: 'a', digest: 'abc' }, 500, 'checksum mismatch (file change by other user?)'],
    [{ name: 'a', skiplock: 1 }, 400, { skiplock: 'Only root may use this option.' }],
    [
      { balloon: 4096, memory: 2048 },
      500,
      'balloon value too large (must be smaller than assigned memory)',
    ],
    [{ serial0: '/dev/ttyS0' }, 500, "only root can modify 'serial0' config for real devices"],
    [{ lock: 'backup' }, 500, "only root can set 'lock' config"],
    [{ boot: 'order=virtio0' }, 500, "invalid bootorder: device 'virtio0' does not exist'"],
    [{ ide2: 'local:iso/none.iso,media=cdrom' }, 500, "volume 'local:iso/none.iso' does not exist"],
  ])('refuses %j', async (params, status, problem) => {
    const harness = await withVm();
    const answer = await harness.call('PUT', `${PATH}/config`, params);
    expect(answer.status).toBe(status);
    if (typeof problem === 'string') expect(answer.reason).toBe(problem);
    else expect(answer.errors).toEqual(problem);
  });

  it('is done when PUT answers; unset options may be deleted; the digest changes', async () => {
    const harness = await withVm();
    const before = (await harness.call('GET', `${PATH}/config`)).data.digest;
    const answer = await harness.call('PUT', `${PATH}/config`, {
      name: 'new',
      tags: 'Z,a;a',
      delete: 'onboot',
      digest: before,
    });
    expect([answer.status, answer.data]).toEqual([200, null]);
    const { data } = await harness.call('GET', `${PATH}/config`);
    expect(data).toMatchObject({ name: 'new', tags: 'a;z' });
    expect(data.digest).not.toBe(before);
  });

  it('keeps hardware changes of a running VM waiting until it is off', async () => {
    const harness = await withVm({ ide2: 'local:iso/debian.iso,media=cdrom', memory: 1024 });
    await power(harness, 'start');
    await harness.call('PUT', `${PATH}/config`, {
      memory: 2048,
      name: 'renamed',
      ide2: 'none,media=cdrom',
      agent: 1,
    });
    const config = async (params: Params = {}) =>
      (await harness.call('GET', `${PATH}/config`, params)).data;
    expect(await config()).toMatchObject({
      memory: '2048',
      name: 'renamed',
      ide2: 'none,media=cdrom',
      agent: '1',
    });
    const current = await config({ current: 1 });
    expect(current).toMatchObject({ memory: '1024', name: 'renamed', ide2: 'none,media=cdrom' });
    expect(current.agent).toBeUndefined();
    await harness.call('PUT', `${PATH}/config`, { delete: 'ide2' });
    const { data } = await harness.call('GET', `${PATH}/pending`);
    expect(data.find((row: { key: string }) => row.key === 'memory')).toEqual({
      key: 'memory',
      value: '1024',
      pending: '2048',
    });
    expect(data.find((row: { key: string }) => row.key === 'ide2')).toMatchObject({ delete: 1 });
    expect((await harness.call('POST', `${PATH}/agent/ping`)).reason).toBe(
      'No QEMU guest agent configured',
    );
    await harness.call('PUT', `${PATH}/config`, { revert: 'agent' });
    await power(harness, 'stop');
    expect((await config({ current: 1 })).ide2).toBeUndefined();
    expect(await config({ current: 1 })).toMatchObject({ memory: '2048' });
    expect((await config()).agent).toBeUndefined();
  });

  it('in a task where disks are made; a deleted disk becomes unused, then goes', async () => {
    const harness = await withVm();
    expect(
      await harness.waitForTask(
        await harness.call('POST', `${PATH}/config`, { scsi1: 'local-lvm:2' }),
      ),
    ).toBe('OK');
    await harness.call('PUT', `${PATH}/config`, { delete: 'scsi1' });
    expect((await harness.call('GET', `${PATH}/config`)).data.unused0).toBe(
      'local-lvm:vm-100-disk-1',
    );
    await harness.call('PUT', `${PATH}/config`, { delete: 'unused0' });
    expect(harness.sim.inspect().volumes.some(({ id }) => id.endsWith('disk-1'))).toBe(false);
    const delayed = await harness.call('POST', `${PATH}/config`, { cores: 2, background_delay: 5 });
    expect([delayed.status, delayed.data]).toEqual([200, null]);
  });

  it('waits for the lock of the VM and gives up after ten seconds', async () => {
    const harness = await withVm();
    await power(harness, 'start');
    const shutdown = await harness.call('POST', `${PATH}/status/shutdown`, { timeout: 30 });
    const before = harness.clock.now();
    const answer = await harness.call('PUT', `${PATH}/config`, { name: 'x' });
    // The empty disk's guest comes from the network and needs a while until it listens to anybody.
    expect(answer.reason).toBe(
      "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout",
    );
    expect(harness.clock.now() - before).toBe(10_000);
    expect(await harness.waitForTask(shutdown)).toBe('VM quit/powerdown failed - got timeout');
  });

  it('respects the lock in the configuration', async () => {
    const harness = await withVm();
    harness.sim.externalChanges.setOption(100, 'lock', 'backup');
    expect((await harness.call('PUT', `${PATH}/config`, { name: 'x' })).reason).toBe(
      'VM is locked (backup)',
    );
    expect(await power(harness, 'start')).toBe('VM is locked (backup)');
    expect((await harness.call('POST', `${PATH}/clone`, { newid: 101 })).reason).toBe(
      'VM is locked (backup)',
    );
  });
});

describe('growing a disk', () => {
  it.each([
    [{ disk: 'scsi0', size: '+2G' }, 'OK', '10G'],
    [{ disk: 'scsi0', size: '16G' }, 'OK', '16G'],
    [{ disk: 'scsi0', size: '1G' }, 'shrinking disks is not supported', '8G'],
    [{ disk: 'scsi5', size: '1G' }, "disk 'scsi5' does not exist", '8G'],
  ])('%j → %s', async (params, status, size) => {
    const harness = await withVm();
    expect(await harness.waitForTask(await harness.call('PUT', `${PATH}/resize`, params))).toBe(
      status,
    );
    expect((await harness.call('GET', `${PATH}/config`)).data.scsi0).toBe(
      `local-lvm:vm-100-disk-0,size=${size}`,
    );
  });
});

describe('power', () => {
  it('start: refusals come in the task', async () => {
    const harness = await withVm({ cores: 32 });
    expect(await power(harness, 'start')).toBe('MAX 16 vcpus allowed per VM on this node');
    await harness.call('PUT', `${PATH}/config`, {
      cores: 1,
      ide2: 'local:iso/debian.iso,media=cdrom',
    });
    expect(await power(harness, 'start')).toBe('OK');
    expect(await power(harness, 'start')).toBe('VM 100 already running');
    expect(await power(harness, 'stop')).toBe('OK');
    expect(await power(harness, 'stop')).toBe('OK');
    expect(await power(harness, 'shutdown')).toBe('OK');
    harness.sim.externalChanges.deleteVolume('pve1', 'local:iso/debian.iso');
    expect(await power(harness, 'start')).toBe("volume 'local:iso/debian.iso' does not exist");
    expect((await harness.call('POST', '/nodes/pve1/qemu/999/status/start')).status).toBe(200);
  });

  it('start warns about io threads without their controller', async () => {
    const harness = await withVm({ scsi0: 'local-lvm:1,iothread=1' });
    expect(await power(harness, 'start')).toBe('WARNINGS: 1');
  });

  it('reset, reboot, suspend and resume want a running VM', async () => {
    const harness = await withVm();
    for (const what of ['reset', 'reboot', 'suspend', 'resume']) {
      expect((await harness.call('POST', `${PATH}/status/${what}`)).reason).toBe(
        'VM 100 not running',
      );
    }
    expect((await harness.call('POST', '/nodes/pve1/qemu/999/status/reset')).reason).toBe(
      "unable to find configuration file for VM 999 on node 'pve1'",
    );
    await power(harness, 'start');
    expect(await power(harness, 'suspend')).toBe('OK');
    expect((await harness.call('GET', `${PATH}/status/current`)).data.qmpstatus).toBe('paused');
    expect((await harness.call('POST', `${PATH}/status/shutdown`)).reason).toBe(
      'VM is paused - cannot shutdown',
    );
    expect(await power(harness, 'resume')).toBe('OK');
    expect(await power(harness, 'reset')).toBe('OK');
  });

  it('forceStop ends what does not listen; overrule-shutdown ends the wait', async () => {
    const cluster = {
      ...testCluster(),
      guests: [{ match: 'deaf', behaviour: 'ignores-shutdown' as const }],
    };
    const harness = await withVm({ name: 'deaf' }, { cluster });
    await power(harness, 'start');
    const before = harness.clock.now();
    expect(await power(harness, 'shutdown', { forceStop: 1, timeout: 20 })).toBe('OK');
    expect(harness.clock.now() - before).toBeGreaterThanOrEqual(20_000);
    await power(harness, 'start');
    const waiting = await harness.call('POST', `${PATH}/status/shutdown`);
    expect(await power(harness, 'stop', { 'overrule-shutdown': 1 })).toBe('OK');
    expect(await harness.waitForTask(waiting)).toBe('received interrupt');
  });

  it('destroy: protection, HA, disks and ISOs', async () => {
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

  it('destroy leaves a disk that it cannot remove, and says so', async () => {
    const harness = await withVm();
    harness.sim.externalChanges.setStorageActive('local-lvm', false);
    expect(await harness.waitForTask(await harness.call('DELETE', PATH))).toBe('WARNINGS: 1');
    expect(harness.sim.inspect().vms).toEqual([]);
    expect(harness.sim.inspect().volumes.some(({ vmId }) => vmId === 100)).toBe(true);
    harness.sim.externalChanges.setStorageActive('local-lvm', true);
    await harness.createVm(100, { scsi0: 'local-lvm:1' });
    const answer = await harness.call('DELETE', PATH, { 'destroy-unreferenced-disks': 1 });
    expect(await harness.waitForTask(answer)).toBe('OK');
    expect(harness.sim.inspect().volumes.some(({ vmId }) => vmId === 100)).toBe(false);
  });

  it('nothing is changed without quorum, but everything can be read', async () => {
    const harness = await withVm();
    harness.sim.externalChanges.setQuorum(false);
    const readOnly = /^unable to open file '.*\/100\.conf\.tmp\.\d+' - Permission denied$/;
    expect((await harness.call('POST', `${PATH}/status/start`)).reason).toBe(
      'cluster not ready - no quorum?',
    );
    expect((await harness.call('PUT', `${PATH}/config`, { name: 'x' })).reason).toMatch(readOnly);
    expect(await harness.waitForTask(await harness.call('DELETE', PATH))).toMatch(readOnly);
    expect((await harness.call('POST', '/pools', { poolid: 'x' })).reason).toBe(
      "create pool failed: cfs-lock 'file-user_cfg' error: no quorum!",
    );
    expect((await harness.call('GET', `${PATH}/config`)).status).toBe(200);
  });

  it('options that hosts keep for themselves are refused', async () => {
    const harness = await withVm();
    const refused = async (what: string, params: Params) =>
      (await harness.call('POST', `${PATH}/status/${what}`, params)).errors;
    expect(await refused('start', { stateuri: 'tcp' })).toEqual({
      stateuri: 'Only root may use this option.',
    });
    expect(await refused('stop', { keepActive: 1 })).toEqual({
      keepActive: 'Only root may use this option.',
    });
    expect(await refused('shutdown', { skiplock: 1 })).toEqual({
      skiplock: 'Only root may use this option.',
    });
    await harness.call('POST', '/cluster/ha/resources', { sid: 'vm:100' });
    expect(await refused('stop', { 'overrule-shutdown': 1 })).toEqual({
      'overrule-shutdown': 'Not applicable for HA resources.',
    });
  });

  it('drives can be unlinked; cloud-init options are listed', async () => {
    const harness = await withVm({ ciuser: 'me', cipassword: 'secret' });
    expect((await harness.call('PUT', `${PATH}/unlink`, { idlist: 'scsi0' })).status).toBe(200);
    const { data } = await harness.call('GET', `${PATH}/config`);
    expect(data).toMatchObject({ unused0: 'local-lvm:vm-100-disk-0', cipassword: '**********' });
    expect(data.boot).toBe('order=net0');
    expect((await harness.call('GET', `${PATH}/cloudinit`)).data).toEqual([
      { key: 'ciuser', value: 'me' },
      { key: 'cipassword', value: '**********' },
    ]);
  });

  it('a managed VM is started by the resource manager, later', async () => {
    const harness = await withVm();
    await harness.call('POST', '/cluster/ha/resources', { sid: 'vm:100', state: 'stopped' });
    const answer = await harness.call('POST', `${PATH}/status/start`);
    expect(answer.data).toContain(':hastart:100:');
    expect(await harness.waitForTask(answer)).toBe('OK');
    expect(harness.sim.inspect().vms[0]?.running).toBe(false);
    await harness.clock.advance(30_000);
    expect(harness.sim.inspect().vms[0]?.running).toBe(true);
  });
});

describe('snapshots', () => {
  it('are listed, taken once, rolled back to and deleted', async () => {
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
