// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Bench, testCluster } from '../support/bench.ts';

const PATH = '/nodes/pve1/qemu/100';
type Params = Parameters<Bench['call']>[2];

async function withVm(
  params: Params = {},
  options: ConstructorParameters<typeof Bench>[0] = {},
): Promise<Bench> {
  const bench = new Bench(options);
  await bench.vm(100, { scsi0: 'local-lvm:8', net0: 'virtio,bridge=vmbr0', ...params });
  return bench;
}

async function power(bench: Bench, what: string, params: Params = {}): Promise<string> {
  return await bench.task(await bench.call('POST', `${PATH}/status/${what}`, params));
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
    const bench = await withVm();
    const answer = await bench.call('PUT', `${PATH}/config`, params);
    expect(answer.status).toBe(status);
    if (typeof problem === 'string') expect(answer.reason).toBe(problem);
    else expect(answer.errors).toEqual(problem);
  });

  it('is done when PUT answers; unset options may be deleted; the digest changes', async () => {
    const bench = await withVm();
    const before = (await bench.call('GET', `${PATH}/config`)).data.digest;
    const answer = await bench.call('PUT', `${PATH}/config`, {
      name: 'new',
      tags: 'Z,a;a',
      delete: 'onboot',
      digest: before,
    });
    expect([answer.status, answer.data]).toEqual([200, null]);
    const { data } = await bench.call('GET', `${PATH}/config`);
    expect(data).toMatchObject({ name: 'new', tags: 'a;z' });
    expect(data.digest).not.toBe(before);
  });

  it('keeps hardware changes of a running VM waiting until it is off', async () => {
    const bench = await withVm({ ide2: 'local:iso/debian.iso,media=cdrom', memory: 1024 });
    await power(bench, 'start');
    await bench.call('PUT', `${PATH}/config`, {
      memory: 2048,
      name: 'renamed',
      ide2: 'none,media=cdrom',
      agent: 1,
    });
    const config = async (params: Params = {}) =>
      (await bench.call('GET', `${PATH}/config`, params)).data;
    expect(await config()).toMatchObject({
      memory: '2048',
      name: 'renamed',
      ide2: 'none,media=cdrom',
      agent: '1',
    });
    const current = await config({ current: 1 });
    expect(current).toMatchObject({ memory: '1024', name: 'renamed', ide2: 'none,media=cdrom' });
    expect(current.agent).toBeUndefined();
    await bench.call('PUT', `${PATH}/config`, { delete: 'ide2' });
    const { data } = await bench.call('GET', `${PATH}/pending`);
    expect(data.find((row: { key: string }) => row.key === 'memory')).toEqual({
      key: 'memory',
      value: '1024',
      pending: '2048',
    });
    expect(data.find((row: { key: string }) => row.key === 'ide2')).toMatchObject({ delete: 1 });
    expect((await bench.call('POST', `${PATH}/agent/ping`)).reason).toBe(
      'No QEMU guest agent configured',
    );
    await bench.call('PUT', `${PATH}/config`, { revert: 'agent' });
    await power(bench, 'stop');
    expect((await config({ current: 1 })).ide2).toBeUndefined();
    expect(await config({ current: 1 })).toMatchObject({ memory: '2048' });
    expect((await config()).agent).toBeUndefined();
  });

  it('in a task where disks are made; a deleted disk becomes unused, then goes', async () => {
    const bench = await withVm();
    expect(
      await bench.task(await bench.call('POST', `${PATH}/config`, { scsi1: 'local-lvm:2' })),
    ).toBe('OK');
    await bench.call('PUT', `${PATH}/config`, { delete: 'scsi1' });
    expect((await bench.call('GET', `${PATH}/config`)).data.unused0).toBe(
      'local-lvm:vm-100-disk-1',
    );
    await bench.call('PUT', `${PATH}/config`, { delete: 'unused0' });
    expect(bench.sim.inspect().volumes.some(({ id }) => id.endsWith('disk-1'))).toBe(false);
    const delayed = await bench.call('POST', `${PATH}/config`, { cores: 2, background_delay: 5 });
    expect([delayed.status, delayed.data]).toEqual([200, null]);
  });

  it('waits for the lock of the VM and gives up after ten seconds', async () => {
    const bench = await withVm();
    await power(bench, 'start');
    const shutdown = await bench.call('POST', `${PATH}/status/shutdown`, { timeout: 30 });
    const before = bench.clock.now();
    const answer = await bench.call('PUT', `${PATH}/config`, { name: 'x' });
    // The empty disk's guest comes from the network and needs a while until it listens to anybody.
    expect(answer.reason).toBe(
      "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout",
    );
    expect(bench.clock.now() - before).toBe(10_000);
    expect(await bench.task(shutdown)).toBe('VM quit/powerdown failed - got timeout');
  });

  it('respects the lock in the configuration', async () => {
    const bench = await withVm();
    bench.sim.meddler.setOption(100, 'lock', 'backup');
    expect((await bench.call('PUT', `${PATH}/config`, { name: 'x' })).reason).toBe(
      'VM is locked (backup)',
    );
    expect(await power(bench, 'start')).toBe('VM is locked (backup)');
    expect((await bench.call('POST', `${PATH}/clone`, { newid: 101 })).reason).toBe(
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
    const bench = await withVm();
    expect(await bench.task(await bench.call('PUT', `${PATH}/resize`, params))).toBe(status);
    expect((await bench.call('GET', `${PATH}/config`)).data.scsi0).toBe(
      `local-lvm:vm-100-disk-0,size=${size}`,
    );
  });
});

describe('power', () => {
  it('start: refusals come in the task', async () => {
    const bench = await withVm({ cores: 32 });
    expect(await power(bench, 'start')).toBe('MAX 16 vcpus allowed per VM on this node');
    await bench.call('PUT', `${PATH}/config`, {
      cores: 1,
      ide2: 'local:iso/debian.iso,media=cdrom',
    });
    expect(await power(bench, 'start')).toBe('OK');
    expect(await power(bench, 'start')).toBe('VM 100 already running');
    expect(await power(bench, 'stop')).toBe('OK');
    expect(await power(bench, 'stop')).toBe('OK');
    expect(await power(bench, 'shutdown')).toBe('OK');
    bench.sim.meddler.deleteVolume('pve1', 'local:iso/debian.iso');
    expect(await power(bench, 'start')).toBe("volume 'local:iso/debian.iso' does not exist");
    expect((await bench.call('POST', '/nodes/pve1/qemu/999/status/start')).status).toBe(200);
  });

  it('start warns about io threads without their controller', async () => {
    const bench = await withVm({ scsi0: 'local-lvm:1,iothread=1' });
    expect(await power(bench, 'start')).toBe('WARNINGS: 1');
  });

  it('reset, reboot, suspend and resume want a running VM', async () => {
    const bench = await withVm();
    for (const what of ['reset', 'reboot', 'suspend', 'resume']) {
      expect((await bench.call('POST', `${PATH}/status/${what}`)).reason).toBe(
        'VM 100 not running',
      );
    }
    expect((await bench.call('POST', '/nodes/pve1/qemu/999/status/reset')).reason).toBe(
      "unable to find configuration file for VM 999 on node 'pve1'",
    );
    await power(bench, 'start');
    expect(await power(bench, 'suspend')).toBe('OK');
    expect((await bench.call('GET', `${PATH}/status/current`)).data.qmpstatus).toBe('paused');
    expect((await bench.call('POST', `${PATH}/status/shutdown`)).reason).toBe(
      'VM is paused - cannot shutdown',
    );
    expect(await power(bench, 'resume')).toBe('OK');
    expect(await power(bench, 'reset')).toBe('OK');
  });

  it('forceStop ends what does not listen; overrule-shutdown ends the wait', async () => {
    const cluster = {
      ...testCluster(),
      guests: [{ match: 'deaf', behaviour: 'ignores-shutdown' as const }],
    };
    const bench = await withVm({ name: 'deaf' }, { cluster });
    await power(bench, 'start');
    const before = bench.clock.now();
    expect(await power(bench, 'shutdown', { forceStop: 1, timeout: 20 })).toBe('OK');
    expect(bench.clock.now() - before).toBeGreaterThanOrEqual(20_000);
    await power(bench, 'start');
    const waiting = await bench.call('POST', `${PATH}/status/shutdown`);
    expect(await power(bench, 'stop', { 'overrule-shutdown': 1 })).toBe('OK');
    expect(await bench.task(waiting)).toBe('received interrupt');
  });

  it('destroy: protection, HA, disks and ISOs', async () => {
    const bench = await withVm({ ide2: 'local:iso/debian.iso,media=cdrom', protection: 1 });
    expect((await bench.call('DELETE', PATH)).reason).toBe(
      "can't remove VM 100 - protection mode enabled",
    );
    await bench.call('PUT', `${PATH}/config`, { protection: 0 });
    await bench.call('POST', '/cluster/ha/resources', { sid: 'vm:100' });
    expect((await bench.call('DELETE', PATH)).reason).toBe(
      'unable to remove VM 100 - used in HA resources and purge parameter not set.',
    );
    expect(await bench.task(await bench.call('DELETE', PATH, { purge: 1 }))).toBe('OK');
    const left = bench.sim.inspect().volumes.map(({ id }) => id);
    expect(left).toContain('local:iso/debian.iso');
    expect(left.some((id) => id.includes('vm-100'))).toBe(false);
    expect((await bench.call('DELETE', PATH)).reason).toBe(
      "Configuration file 'nodes/pve1/qemu-server/100.conf' does not exist",
    );
  });

  it('destroy leaves a disk that it cannot remove, and says so', async () => {
    const bench = await withVm();
    bench.sim.meddler.setStorageActive('local-lvm', false);
    expect(await bench.task(await bench.call('DELETE', PATH))).toBe('WARNINGS: 1');
    expect(bench.sim.inspect().vms).toEqual([]);
    expect(bench.sim.inspect().volumes.some(({ vmId }) => vmId === 100)).toBe(true);
    bench.sim.meddler.setStorageActive('local-lvm', true);
    await bench.vm(100, { scsi0: 'local-lvm:1' });
    const answer = await bench.call('DELETE', PATH, { 'destroy-unreferenced-disks': 1 });
    expect(await bench.task(answer)).toBe('OK');
    expect(bench.sim.inspect().volumes.some(({ vmId }) => vmId === 100)).toBe(false);
  });

  it('nothing is changed without quorum, but everything can be read', async () => {
    const bench = await withVm();
    bench.sim.meddler.setQuorum(false);
    const readOnly = /^unable to open file '.*\/100\.conf\.tmp\.\d+' - Permission denied$/;
    expect((await bench.call('POST', `${PATH}/status/start`)).reason).toBe(
      'cluster not ready - no quorum?',
    );
    expect((await bench.call('PUT', `${PATH}/config`, { name: 'x' })).reason).toMatch(readOnly);
    expect(await bench.task(await bench.call('DELETE', PATH))).toMatch(readOnly);
    expect((await bench.call('POST', '/pools', { poolid: 'x' })).reason).toBe(
      "create pool failed: cfs-lock 'file-user_cfg' error: no quorum!",
    );
    expect((await bench.call('GET', `${PATH}/config`)).status).toBe(200);
  });

  it('options that hosts keep for themselves are refused', async () => {
    const bench = await withVm();
    const refused = async (what: string, params: Params) =>
      (await bench.call('POST', `${PATH}/status/${what}`, params)).errors;
    expect(await refused('start', { stateuri: 'tcp' })).toEqual({
      stateuri: 'Only root may use this option.',
    });
    expect(await refused('stop', { keepActive: 1 })).toEqual({
      keepActive: 'Only root may use this option.',
    });
    expect(await refused('shutdown', { skiplock: 1 })).toEqual({
      skiplock: 'Only root may use this option.',
    });
    await bench.call('POST', '/cluster/ha/resources', { sid: 'vm:100' });
    expect(await refused('stop', { 'overrule-shutdown': 1 })).toEqual({
      'overrule-shutdown': 'Not applicable for HA resources.',
    });
  });

  it('drives can be unlinked; cloud-init options are listed', async () => {
    const bench = await withVm({ ciuser: 'me', cipassword: 'secret' });
    expect((await bench.call('PUT', `${PATH}/unlink`, { idlist: 'scsi0' })).status).toBe(200);
    const { data } = await bench.call('GET', `${PATH}/config`);
    expect(data).toMatchObject({ unused0: 'local-lvm:vm-100-disk-0', cipassword: '**********' });
    expect(data.boot).toBe('order=net0');
    expect((await bench.call('GET', `${PATH}/cloudinit`)).data).toEqual([
      { key: 'ciuser', value: 'me' },
      { key: 'cipassword', value: '**********' },
    ]);
  });

  it('a managed VM is started by the resource manager, later', async () => {
    const bench = await withVm();
    await bench.call('POST', '/cluster/ha/resources', { sid: 'vm:100', state: 'stopped' });
    const answer = await bench.call('POST', `${PATH}/status/start`);
    expect(answer.data).toContain(':hastart:100:');
    expect(await bench.task(answer)).toBe('OK');
    expect(bench.sim.inspect().vms[0]?.running).toBe(false);
    await bench.clock.advance(30_000);
    expect(bench.sim.inspect().vms[0]?.running).toBe(true);
  });
});

describe('snapshots', () => {
  it('are listed, taken once, rolled back to and deleted', async () => {
    const bench = await withVm({ name: 'one' });
    const path = `${PATH}/snapshot`;
    expect(await bench.task(await bench.call('POST', path, { snapname: 'first' }))).toBe('OK');
    expect(await bench.task(await bench.call('POST', path, { snapname: 'first' }))).toBe(
      "snapshot name 'first' already used",
    );
    expect((await bench.call('GET', path)).data.map((row: { name: string }) => row.name)).toEqual([
      'first',
      'current',
    ]);
    await bench.call('PUT', `${PATH}/config`, { name: 'two' });
    expect(await bench.task(await bench.call('POST', `${path}/first/rollback`))).toBe('OK');
    expect((await bench.call('GET', `${PATH}/config`)).data.name).toBe('one');
    expect(await bench.task(await bench.call('DELETE', `${path}/none`))).toBe(
      "snapshot 'none' does not exist",
    );
    expect(await bench.task(await bench.call('DELETE', `${path}/first`))).toBe('OK');
  });
});
