// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Bench, testCluster } from '../support/bench.ts';

const PATH = '/nodes/pve1/qemu/100';
const IMAGE = 'local-lvm:0,import-from=local:import/noble-with-agent.qcow2';
type Params = Parameters<Bench['call']>[2];

async function booted(params: Params = {}): Promise<Bench> {
  const bench = new Bench();
  await bench.vm(100, { scsi0: IMAGE, net0: 'virtio,bridge=vmbr0', agent: 1, ...params });
  await bench.task(await bench.call('POST', `${PATH}/status/start`));
  await bench.clock.advance(120_000);
  return bench;
}

describe('the guest agent', () => {
  it('is missing for three reasons, told in this order', async () => {
    const bench = new Bench();
    expect((await bench.call('POST', `${PATH}/agent/ping`)).reason).toBe(
      "Configuration file 'nodes/pve1/qemu-server/100.conf' does not exist",
    );
    await bench.vm(100, { scsi0: IMAGE });
    const ping = () => bench.call('POST', `${PATH}/agent/ping`);
    expect((await ping()).reason).toBe('No QEMU guest agent configured');
    await bench.call('PUT', `${PATH}/config`, { agent: 1 });
    expect((await ping()).reason).toBe('VM 100 is not running');
    await bench.task(await bench.call('POST', `${PATH}/status/start`));
    const before = bench.clock.now();
    expect((await ping()).reason).toBe('QEMU guest agent is not running');
    expect(bench.clock.now() - before).toBe(3000);
  });

  it('answers with addresses from DHCP, MACs in lower case and the loopback', async () => {
    const bench = await booted();
    const { data } = await bench.call('GET', `${PATH}/agent/network-get-interfaces`);
    const mac = /virtio=([^,]+)/.exec((await bench.call('GET', `${PATH}/config`)).data.net0)?.[1];
    expect(data.result[0].name).toBe('lo');
    expect(data.result[1]['hardware-address']).toBe(mac?.toLowerCase());
    expect(data.result[1]['ip-addresses'][0]['ip-address']).toMatch(/^10\.20\./);
    expect((await bench.call('GET', `${PATH}/agent/get-host-name`)).data.result).toHaveProperty(
      'host-name',
    );
    expect((await bench.call('GET', `${PATH}/agent/get-osinfo`)).data.result.id).toBe('ubuntu');
    expect((await bench.call('GET', `${PATH}/agent/info`)).data.result).toHaveProperty('version');
    expect((await bench.call('POST', `${PATH}/agent`, { command: 'ping' })).data).toEqual({
      result: {},
    });
  });

  it('runs programs; their end can be read once', async () => {
    const bench = await booted();
    const { data } = await bench.call('POST', `${PATH}/agent/exec`, {
      command: ['/bin/sh', '-c', 'echo hi'],
    });
    expect(data.pid).toBeGreaterThan(0);
    await bench.clock.advance(5000);
    const status = () => bench.call('GET', `${PATH}/agent/exec-status`, { pid: data.pid });
    expect((await status()).data).toMatchObject({ exited: 1, exitcode: 0, 'out-data': 'hi\n' });
    expect((await status()).reason).toBe("Agent error: Invalid parameter 'pid'");
    expect((await bench.call('POST', `${PATH}/agent/exec`)).errors).toEqual({
      command: 'property is missing and it is not optional',
    });
  });

  it('hands input on as bytes, and loses the end of words that are not ASCII', async () => {
    const bench = await booted();
    const exec = (params: Record<string, string | readonly string[]>) =>
      bench.call('POST', `${PATH}/agent/exec`, params);
    const wide = await exec({ command: '/bin/cat', 'input-data': '☃' });
    expect(wide).toMatchObject({ status: 500, reason: expect.stringContaining('Wide character') });
    const cutOff = await exec({ command: ['/bin/echo', 'ééé'] });
    expect(cutOff.reason).toMatch(/q(ga|mp) command 'guest-exec' failed - got timeout/);
  });

  it('a guest that ends itself ends its VM; its address and disk stay', async () => {
    const bench = await booted();
    const address = async () =>
      (await bench.call('GET', `${PATH}/agent/network-get-interfaces`)).data.result[1][
        'ip-addresses'
      ][0]['ip-address'];
    const before = await address();
    expect(await bench.task(await bench.call('POST', `${PATH}/status/reboot`))).toBe('OK');
    await bench.clock.advance(120_000);
    expect(await address()).toBe(before);
    await bench.call('POST', `${PATH}/agent/exec`, { command: ['/sbin/poweroff'] });
    await bench.clock.advance(60_000);
    expect(bench.sim.inspect().vms[0]?.running).toBe(false);
  });

  it('shows the cloud-init documents', async () => {
    const bench = await booted({
      ide0: 'local-lvm:cloudinit',
      ciuser: 'me',
      name: 'ci',
      sshkeys: encodeURIComponent('ssh-ed25519 AAAA me'),
    });
    const dump = async (type: string) =>
      (await bench.call('GET', `${PATH}/cloudinit/dump`, { type })).data;
    expect(await dump('user')).toContain('user: me');
    expect(await dump('user')).toContain('  - ssh-ed25519 AAAA me');
    expect(await dump('meta')).toContain('instance-id');
  });
});

describe('tasks', () => {
  it('have a status, a log with an end, and an unknown cousin', async () => {
    const bench = new Bench();
    await bench.vm(100);
    const start = await bench.call('POST', `${PATH}/status/start`);
    const path = `/nodes/pve1/tasks/${start.data}`;
    const running = (await bench.call('GET', `${path}/status`)).data;
    expect(running).toMatchObject({
      status: 'running',
      type: 'qmstart',
      id: '100',
      user: 'scaler@pve',
      tokenid: 'sim',
    });
    expect(running.exitstatus).toBeUndefined();
    await bench.task(start);
    const log = await bench.call('GET', `${path}/log`);
    expect(log.data.at(-1).t).toBe('TASK OK');
    expect(JSON.parse(log.body).total).toBe(log.data.length);
    expect((await bench.call('GET', `${path}/log`, { start: 0, limit: 1 })).data).toHaveLength(1);
    const unknown = `/nodes/pve1/tasks/${start.data.replace('qmstart', 'qmstop')}/status`;
    expect((await bench.call('GET', unknown)).errors).toEqual({ upid: 'no such task' });
    expect((await bench.call('GET', unknown.replace(/status$/, 'log'))).data.t).toMatch(
      /^unable to open file/,
    );
    expect((await bench.call('GET', '/nodes/pve1/tasks/nonsense/status')).errors).toEqual({
      upid: 'unable to parse worker upid',
    });
    expect((await bench.call('GET', path)).data).toEqual([{ name: 'log' }, { name: 'status' }]);
  });

  it('are listed by host and by cluster, filtered, newest first', async () => {
    const bench = new Bench();
    await bench.vm(100, { scsi0: 'local-lvm:1' });
    await bench.vm(101);
    await bench.task(await bench.call('POST', '/nodes/pve1/qemu/999/status/start'));
    const running = await bench.call('POST', `${PATH}/status/start`);
    const types = async (params: Params) =>
      (await bench.call('GET', '/nodes/pve1/tasks', params)).data.map(
        (row: { type: string; id: string }) => `${row.type} ${row.id}`,
      );
    expect(await types({})).toEqual(['qmstart 999', 'qmcreate 101', 'qmcreate 100']);
    expect(await types({ source: 'active' })).toEqual(['qmstart 100']);
    const [active] = (await bench.call('GET', '/nodes/pve1/tasks', { source: 'active' })).data;
    expect(active).toMatchObject({ status: 'RUNNING' });
    expect(active).not.toHaveProperty('endtime');
    expect(await types({ vmid: 101 })).toEqual(['qmcreate 101']);
    expect(await types({ typefilter: 'qmcreate', limit: 1 })).toEqual(['qmcreate 101']);
    expect(await types({ errors: 1 })).toEqual(['qmstart 999']);
    expect(await types({ statusfilter: 'ok' })).toEqual(['qmcreate 101', 'qmcreate 100']);
    expect((await bench.call('GET', '/cluster/tasks')).data).toHaveLength(4);
    await bench.task(running);
  });

  it('can be aborted by their owner, and are hidden from others', async () => {
    const bench = new Bench({
      cluster: { ...testCluster(), guests: [{ match: '*', behaviour: 'ignores-shutdown' }] },
    });
    await bench.vm(100);
    await bench.task(await bench.call('POST', `${PATH}/status/start`));
    const shutdown = await bench.call('POST', `${PATH}/status/shutdown`);
    const path = `/nodes/pve1/tasks/${shutdown.data}`;
    const own = bench.authorization;
    bench.authorization = 'PVEAPIToken=weak@pve!sep=11111111-1111-4111-8111-111111111111';
    expect((await bench.call('GET', `${path}/status`)).reason).toBe(
      'Permission check failed (/nodes/pve1, Sys.Audit)',
    );
    expect((await bench.call('DELETE', path)).status).toBe(403);
    expect((await bench.call('GET', '/nodes/pve1/tasks')).data).toEqual([]);
    bench.authorization = own;
    expect((await bench.call('DELETE', path)).data).toBeNull();
    expect(await bench.task(shutdown)).toBe('received interrupt');
  });
});
