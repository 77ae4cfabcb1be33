// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SimHarness } from '../testing/sim-harness.ts';

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

async function power(harness: SimHarness, action: string, params: Params = {}): Promise<string> {
  return await harness.waitForTask(await harness.call('POST', `${PATH}/status/${action}`, params));
}

describe('config changes', () => {
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
    [
      { sata0: '/tmp/x.raw' },
      400,
      { sata0: "unable to associate path '/tmp/x.raw' to any storage" },
    ],
    [{ scsi1: 'local-lvm:8,media=cdrom' }, 500, "lvm name '8' contains illegal characters"],
    [{ scsi1: 'local-lvm:disk' }, 500, "unable to parse lvm volume name 'disk'"],
  ])('%j is refused', async (params, status, problem) => {
    const harness = await withVm();
    const response = await harness.call('PUT', `${PATH}/config`, params);
    expect(response.status).toBe(status);
    if (typeof problem === 'string') expect(response.reason).toBe(problem);
    else expect(response.errors).toEqual(problem);
  });

  it('apply before PUT responds, ignore deletion of unset options and change the digest', async () => {
    const harness = await withVm();
    const before = (await harness.call('GET', `${PATH}/config`)).data.digest;
    const response = await harness.call('PUT', `${PATH}/config`, {
      name: 'new',
      tags: 'Z,a;a',
      delete: 'onboot',
      digest: before,
    });
    expect([response.status, response.data]).toEqual([200, null]);
    const { data } = await harness.call('GET', `${PATH}/config`);
    expect(data).toMatchObject({ name: 'new', tags: 'a;z' });
    expect(data.digest).not.toBe(before);
  });

  it('keep hardware changes of a running VM pending until it is off', async () => {
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

  it('run in a task with POST; a deleted disk becomes unused, then is removed', async () => {
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

  it('wait for the VM lock and give up after ten seconds', async () => {
    const harness = await withVm();
    await power(harness, 'start');
    const shutdown = await harness.call('POST', `${PATH}/status/shutdown`, { timeout: 30 });
    const before = harness.clock.now();
    const response = await harness.call('PUT', `${PATH}/config`, { name: 'x' });
    // A guest with an empty disk boots from the network and does not respond to the shutdown for a while.
    expect(response.reason).toBe(
      "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout",
    );
    expect(harness.clock.now() - before).toBe(10_000);
    expect(await harness.waitForTask(shutdown)).toBe('VM quit/powerdown failed - got timeout');
  });

  it('respect the lock option of the config', async () => {
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

  it('unlink drives and list cloud-init options', async () => {
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

  it('fail without quorum, while reads still work', async () => {
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
});
