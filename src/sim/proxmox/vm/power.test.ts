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

async function power(harness: SimHarness, action: string, params: Params = {}): Promise<string> {
  return await harness.waitForTask(await harness.call('POST', `${PATH}/status/${action}`, params));
}

describe('power endpoints', () => {
  it('report start errors in the task', async () => {
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

  it('warn on start about iothread without its controller', async () => {
    const harness = await withVm({ scsi0: 'local-lvm:1,iothread=1' });
    expect(await power(harness, 'start')).toBe('WARNINGS: 1');
  });

  it('require a running VM for reset, reboot, suspend and resume', async () => {
    const harness = await withVm();
    for (const action of ['reset', 'reboot', 'suspend', 'resume']) {
      expect((await harness.call('POST', `${PATH}/status/${action}`)).reason).toBe(
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

  it('stop an unresponsive guest with forceStop, and abort a shutdown with overrule-shutdown', async () => {
    const cluster = {
      ...testCluster(),
      guests: [{ match: 'unresponsive', behaviour: 'ignores-shutdown' as const }],
    };
    const harness = await withVm({ name: 'unresponsive' }, { cluster });
    await power(harness, 'start');
    const before = harness.clock.now();
    expect(await power(harness, 'shutdown', { forceStop: 1, timeout: 20 })).toBe('OK');
    expect(harness.clock.now() - before).toBeGreaterThanOrEqual(20_000);
    await power(harness, 'start');
    const waiting = await harness.call('POST', `${PATH}/status/shutdown`);
    expect(await power(harness, 'stop', { 'overrule-shutdown': 1 })).toBe('OK');
    expect(await harness.waitForTask(waiting)).toBe('received interrupt');
  });

  it('refuse root-only options', async () => {
    const harness = await withVm();
    const refused = async (action: string, params: Params) =>
      (await harness.call('POST', `${PATH}/status/${action}`, params)).errors;
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

  it('leave the start of an HA-managed VM to the HA manager', async () => {
    const harness = await withVm();
    await harness.call('POST', '/cluster/ha/resources', { sid: 'vm:100', state: 'stopped' });
    const response = await harness.call('POST', `${PATH}/status/start`);
    expect(response.data).toContain(':hastart:100:');
    expect(await harness.waitForTask(response)).toBe('OK');
    expect(harness.sim.inspect().vms[0]?.running).toBe(false);
    await harness.clock.advance(30_000);
    expect(harness.sim.inspect().vms[0]?.running).toBe(true);
  });
});
