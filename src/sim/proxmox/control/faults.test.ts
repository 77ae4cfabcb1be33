// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SimConnectionError } from '../http/messages.ts';
import { SimHarness, testCluster } from '../testing/sim-harness.ts';

describe('fault injection', () => {
  const START = 'POST /nodes/{node}/qemu/{vmid}/status/start';

  async function withVm(): Promise<SimHarness> {
    const harness = new SimHarness({ cluster: testCluster(3) });
    await harness.createVm(100, { scsi0: 'local-lvm:1' });
    return harness;
  }

  const start = (harness: SimHarness) => harness.call('POST', '/nodes/pve1/qemu/100/status/start');
  const isRunning = (harness: SimHarness) => harness.sim.inspect().vms[0]?.running;

  it('error responds with the given status once and does not do the work', async () => {
    const harness = await withVm();
    harness.sim.faults.add({
      endpoint: START,
      kind: 'error',
      status: 596,
      message: 'Connection timed out',
    });
    const response = await start(harness);
    expect([response.status, response.reason, response.body]).toEqual([
      596,
      'Connection timed out',
      '',
    ]);
    expect(await harness.waitForTask(await start(harness))).toBe('OK');
    expect(harness.sim.faults.injectedCount).toBe(1);
  });

  it('response-lost does the work before the connection breaks', async () => {
    const harness = await withVm();
    harness.sim.faults.add({ endpoint: START, kind: 'response-lost' });
    await expect(start(harness)).rejects.toBeInstanceOf(SimConnectionError);
    await harness.clock.advance(10_000);
    expect(isRunning(harness)).toBe(true);
  });

  it('delay, response-delayed and hang take the configured time', async () => {
    const harness = await withVm();
    harness.sim.faults.add({ kind: 'delay', delayMs: 7000, vmId: 100 });
    const before = harness.clock.now();
    await harness.call('GET', '/nodes/pve1/qemu/100/config');
    expect(harness.clock.now() - before).toBe(7000);
    harness.sim.faults.add({ kind: 'response-delayed', delayMs: 5000, endpoint: 'GET /nodes/*' });
    await harness.call('GET', '/nodes/pve1/version');
    expect(harness.clock.now() - before).toBe(12_000);
    harness.sim.faults.add({ endpoint: START, kind: 'hang' });
    await expect(start(harness)).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(isRunning(harness)).toBe(false);
  });

  it('host-down and host-down-after take the host offline before or after the work', async () => {
    const harness = await withVm();
    harness.sim.faults.add({
      endpoint: 'POST /nodes/{node}/qemu',
      host: 'pve2',
      kind: 'host-down-after',
    });
    expect(
      (await harness.call('POST', '/nodes/pve2/qemu', { vmid: 300, scsi0: 'local-lvm:1' })).status,
    ).toBe(595);
    await harness.clock.advance(60_000);
    expect(harness.sim.inspect().vms.find(({ id }) => id === 300)?.config).toEqual({
      lock: 'create',
    });
    harness.sim.faults.add({ kind: 'host-down', host: 'pve1' });
    await expect(start(harness)).rejects.toMatchObject({ code: 'ECONNRESET' });
    await expect(start(harness)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    const response = await harness.send({
      method: 'GET',
      target: '/api2/json/version',
      host: 'pve3',
    });
    expect(response.status).toBe(200);
  });

  it('injects with a probability and can be disarmed', async () => {
    const harness = await withVm();
    harness.sim.faults.add({
      kind: 'error',
      probability: 0.5,
      times: 1000,
      endpoint: 'GET /version',
    });
    const statuses = [];
    for (let attempt = 0; attempt < 40; attempt += 1)
      statuses.push((await harness.call('GET', '/version')).status);
    expect(new Set(statuses)).toEqual(new Set([200, 500]));
    harness.sim.faults.clear();
    const disarm = harness.sim.faults.add({ kind: 'error' });
    disarm();
    expect((await harness.call('GET', '/version')).status).toBe(200);
  });
});
