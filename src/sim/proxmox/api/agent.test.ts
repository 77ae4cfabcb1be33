// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SimHarness, testCluster } from '../testing/sim-harness.ts';

const PATH = '/nodes/pve1/qemu/100';
const IMAGE = 'local-lvm:0,import-from=local:import/noble-with-agent.qcow2';
type Params = Parameters<SimHarness['call']>[2];

async function booted(params: Params = {}): Promise<SimHarness> {
  const harness = new SimHarness();
  await harness.createVm(100, { scsi0: IMAGE, net0: 'virtio,bridge=vmbr0', agent: 1, ...params });
  await harness.waitForTask(await harness.call('POST', `${PATH}/status/start`));
  await harness.clock.advance(120_000);
  return harness;
}

describe('the guest agent', () => {
  it('is missing for three reasons, told in this order', async () => {
    const harness = new SimHarness();
    expect((await harness.call('POST', `${PATH}/agent/ping`)).reason).toBe(
      "Configuration file 'nodes/pve1/qemu-server/100.conf' does not exist",
    );
    await harness.createVm(100, { scsi0: IMAGE });
    const ping = () => harness.call('POST', `${PATH}/agent/ping`);
    expect((await ping()).reason).toBe('No QEMU guest agent configured');
    await harness.call('PUT', `${PATH}/config`, { agent: 1 });
    expect((await ping()).reason).toBe('VM 100 is not running');
    await harness.waitForTask(await harness.call('POST', `${PATH}/status/start`));
    const before = harness.clock.now();
    expect((await ping()).reason).toBe('QEMU guest agent is not running');
    expect(harness.clock.now() - before).toBe(3000);
  });

  it('answers with addresses from DHCP, MACs in lower case and the loopback', async () => {
    const harness = await booted();
    const { data } = await harness.call('GET', `${PATH}/agent/network-get-interfaces`);
    const mac = /virtio=([^,]+)/.exec((await harness.call('GET', `${PATH}/config`)).data.net0)?.[1];
    expect(data.result[0].name).toBe('lo');
    expect(data.result[1]['hardware-address']).toBe(mac?.toLowerCase());
    expect(data.result[1]['ip-addresses'][0]['ip-address']).toMatch(/^10\.20\./);
    expect((await harness.call('GET', `${PATH}/agent/get-host-name`)).data.result).toHaveProperty(
      'host-name',
    );
    expect((await harness.call('GET', `${PATH}/agent/get-osinfo`)).data.result.id).toBe('ubuntu');
    expect((await harness.call('GET', `${PATH}/agent/info`)).data.result).toHaveProperty('version');
    expect((await harness.call('POST', `${PATH}/agent`, { command: 'ping' })).data).toEqual({
      result: {},
    });
  });

  it('runs programs; their end can be read once', async () => {
    const harness = await booted();
    const { data } = await harness.call('POST', `${PATH}/agent/exec`, {
      command: ['/bin/sh', '-c', 'echo hi'],
    });
    expect(data.pid).toBeGreaterThan(0);
    await harness.clock.advance(5000);
    const status = () => harness.call('GET', `${PATH}/agent/exec-status`, { pid: data.pid });
    expect((await status()).data).toMatchObject({ exited: 1, exitcode: 0, 'out-data': 'hi\n' });
    expect((await status()).reason).toBe("Agent error: Invalid parameter 'pid'");
    expect((await harness.call('POST', `${PATH}/agent/exec`)).errors).toEqual({
      command: 'property is missing and it is not optional',
    });
  });

  it('hands input on as bytes, and loses the end of words that are not ASCII', async () => {
    const harness = await booted();
    const exec = (params: Record<string, string | readonly string[]>) =>
      harness.call('POST', `${PATH}/agent/exec`, params);
    const wide = await exec({ command: '/bin/cat', 'input-data': '☃' });
    expect(wide).toMatchObject({ status: 500, reason: expect.stringContaining('Wide character') });
    const cutOff = await exec({ command: ['/bin/echo', 'ééé'] });
    expect(cutOff.reason).toMatch(/q(ga|mp) command 'guest-exec' failed - got timeout/);
  });

  it('a guest that ends itself ends its VM; its address and disk stay', async () => {
    const harness = await booted();
    const address = async () =>
      (await harness.call('GET', `${PATH}/agent/network-get-interfaces`)).data.result[1][
        'ip-addresses'
      ][0]['ip-address'];
    const before = await address();
    expect(await harness.waitForTask(await harness.call('POST', `${PATH}/status/reboot`))).toBe(
      'OK',
    );
    await harness.clock.advance(120_000);
    expect(await address()).toBe(before);
    await harness.call('POST', `${PATH}/agent/exec`, { command: ['/sbin/poweroff'] });
    await harness.clock.advance(60_000);
    expect(harness.sim.inspect().vms[0]?.running).toBe(false);
  });

  it('shows the cloud-init documents', async () => {
    const harness = await booted({
      ide0: 'local-lvm:cloudinit',
      ciuser: 'me',
      name: 'ci',
      sshkeys: encodeURIComponent('ssh-ed25519 AAAA me'),
    });
    const dump = async (type: string) =>
      (await harness.call('GET', `${PATH}/cloudinit/dump`, { type })).data;
    expect(await dump('user')).toContain('user: me');
    expect(await dump('user')).toContain('  - ssh-ed25519 AAAA me');
    expect(await dump('meta')).toContain('instance-id');
  });
});

describe('tasks', () => {
  it('have a status, a log with an end, and an unknown cousin', async () => {
    const harness = new SimHarness();
    await harness.createVm(100);
    const start = await harness.call('POST', `${PATH}/status/start`);
    const path = `/nodes/pve1/tasks/${start.data}`;
    const running = (await harness.call('GET', `${path}/status`)).data;
    expect(running).toMatchObject({
      status: 'running',
      type: 'qmstart',
      id: '100',
      user: 'scaler@pve',
      tokenid: 'sim',
    });
    expect(running.exitstatus).toBeUndefined();
    await harness.waitForTask(start);
    const log = await harness.call('GET', `${path}/log`);
    expect(log.data.at(-1).t).toBe('TASK OK');
    expect(JSON.parse(log.body).total).toBe(log.data.length);
    expect((await harness.call('GET', `${path}/log`, { start: 0, limit: 1 })).data).toHaveLength(1);
    const unknown = `/nodes/pve1/tasks/${start.data.replace('qmstart', 'qmstop')}/status`;
    expect((await harness.call('GET', unknown)).errors).toEqual({ upid: 'no such task' });
    expect((await harness.call('GET', unknown.replace(/status$/, 'log'))).data.t).toMatch(
      /^unable to open file/,
    );
    expect((await harness.call('GET', '/nodes/pve1/tasks/nonsense/status')).errors).toEqual({
      upid: 'unable to parse worker upid',
    });
    expect((await harness.call('GET', path)).data).toEqual([{ name: 'log' }, { name: 'status' }]);
  });

  it('are listed by host and by cluster, filtered, newest first', async () => {
    const harness = new SimHarness();
    await harness.createVm(100, { scsi0: 'local-lvm:1' });
    await harness.createVm(101);
    await harness.waitForTask(await harness.call('POST', '/nodes/pve1/qemu/999/status/start'));
    const running = await harness.call('POST', `${PATH}/status/start`);
    const types = async (params: Params) =>
      (await harness.call('GET', '/nodes/pve1/tasks', params)).data.map(
        (row: { type: string; id: string }) => `${row.type} ${row.id}`,
      );
    expect(await types({})).toEqual(['qmstart 999', 'qmcreate 101', 'qmcreate 100']);
    expect(await types({ source: 'active' })).toEqual(['qmstart 100']);
    const [active] = (await harness.call('GET', '/nodes/pve1/tasks', { source: 'active' })).data;
    expect(active).toMatchObject({ status: 'RUNNING' });
    expect(active).not.toHaveProperty('endtime');
    expect(await types({ vmid: 101 })).toEqual(['qmcreate 101']);
    expect(await types({ typefilter: 'qmcreate', limit: 1 })).toEqual(['qmcreate 101']);
    expect(await types({ errors: 1 })).toEqual(['qmstart 999']);
    expect(await types({ statusfilter: 'ok' })).toEqual(['qmcreate 101', 'qmcreate 100']);
    expect((await harness.call('GET', '/cluster/tasks')).data).toHaveLength(4);
    await harness.waitForTask(running);
  });

  it('can be aborted by their owner, and are hidden from others', async () => {
    const harness = new SimHarness({
      cluster: { ...testCluster(), guests: [{ match: '*', behaviour: 'ignores-shutdown' }] },
    });
    await harness.createVm(100);
    await harness.waitForTask(await harness.call('POST', `${PATH}/status/start`));
    const shutdown = await harness.call('POST', `${PATH}/status/shutdown`);
    const path = `/nodes/pve1/tasks/${shutdown.data}`;
    const own = harness.authorization;
    harness.authorization = 'PVEAPIToken=weak@pve!sep=11111111-1111-4111-8111-111111111111';
    expect((await harness.call('GET', `${path}/status`)).reason).toBe(
      'Permission check failed (/nodes/pve1, Sys.Audit)',
    );
    expect((await harness.call('DELETE', path)).status).toBe(403);
    expect((await harness.call('GET', '/nodes/pve1/tasks')).data).toEqual([]);
    harness.authorization = own;
    expect((await harness.call('DELETE', path)).data).toBeNull();
    expect(await harness.waitForTask(shutdown)).toBe('received interrupt');
  });
});
