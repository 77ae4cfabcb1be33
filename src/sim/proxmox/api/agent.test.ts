// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SimHarness } from '../testing/sim-harness.ts';

const PATH = '/nodes/pve1/qemu/100';
const IMAGE = 'local-lvm:0,import-from=local:import/noble-with-agent.qcow2';
type Params = Parameters<SimHarness['call']>[2];

async function bootVm(params: Params = {}): Promise<SimHarness> {
  const harness = new SimHarness();
  await harness.createVm(100, { scsi0: IMAGE, net0: 'virtio,bridge=vmbr0', agent: 1, ...params });
  await harness.waitForTask(await harness.call('POST', `${PATH}/status/start`));
  await harness.clock.advance(120_000);
  return harness;
}

describe('guest agent endpoints', () => {
  it('report a missing VM, agent option, running VM and running agent in this order', async () => {
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

  it('return DHCP addresses, lower-case MACs and the loopback interface', async () => {
    const harness = await bootVm();
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

  it('write and read files, without a result object', async () => {
    const harness = await bootVm();
    const file = '/etc/motd';
    const write = (params: Params) => harness.call('POST', `${PATH}/agent/file-write`, params);
    const read = (params: Params) => harness.call('GET', `${PATH}/agent/file-read`, params);
    expect((await write({ file, content: 'hello' })).data).toBeNull();
    expect((await read({ file })).data).toEqual({ content: 'hello', 'bytes-read': 5 });
    expect((await read({ file, offset: 1, count: 2 })).data).toEqual({
      content: 'el',
      'bytes-read': 2,
      truncated: 1,
    });
    expect((await write({ file, content: 'aGk=', encode: 0 })).data).toBeNull();
    expect((await read({ file, decode: 0 })).data.content).toBe('aGk=');
    expect((await read({ file: '/nosuch' })).reason).toBe(
      "Agent error: failed to open file '/nosuch' (mode: 'r'): No such file or directory",
    );
    expect((await write({ file: '/nosuch/x', content: '' })).reason).toContain("mode: 'wb'");
  });

  it('run commands and return their exit status once', async () => {
    const harness = await bootVm();
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

  it('refuse wide characters in input and time out on non-ASCII arguments', async () => {
    const harness = await bootVm();
    const exec = (params: Record<string, string | readonly string[]>) =>
      harness.call('POST', `${PATH}/agent/exec`, params);
    const wide = await exec({ command: '/bin/cat', 'input-data': '☃' });
    expect(wide).toMatchObject({ status: 500, reason: expect.stringContaining('Wide character') });
    const cutOff = await exec({ command: ['/bin/echo', 'ééé'] });
    expect(cutOff.reason).toMatch(/q(ga|mp) command 'guest-exec' failed - got timeout/);
  });

  it('stop the VM when the guest powers off, and keep its address over a reboot', async () => {
    const harness = await bootVm();
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

  it('return the generated cloud-init documents', async () => {
    const harness = await bootVm({
      ide0: 'local-lvm:cloudinit',
      ciuser: 'me',
      name: 'ci',
      sshkeys: encodeURIComponent(
        'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPpKmS8cGBbAbRcWhcMLSwL5fXpxcFBzsjBHRsKcDBA9 me',
      ),
    });
    const dump = async (type: string) =>
      (await harness.call('GET', `${PATH}/cloudinit/dump`, { type })).data;
    expect(await dump('user')).toContain('user: me');
    expect(await dump('user')).toContain(
      '  - ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPpKmS8cGBbAbRcWhcMLSwL5fXpxcFBzsjBHRsKcDBA9 me',
    );
    expect(await dump('meta')).toContain('instance-id');
  });
});
