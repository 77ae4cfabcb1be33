// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SimConnectionError } from '../http/messages.ts';
import { TASK_ARCHIVE_SIZE } from '../tasks/engine.ts';
import { SimHarness, testCluster } from '../testing/sim-harness.ts';

describe('faults', () => {
  const START = 'POST /nodes/{node}/qemu/{vmid}/status/start';

  async function withVm(): Promise<SimHarness> {
    const harness = new SimHarness({ cluster: testCluster(3) });
    await harness.createVm(100, { scsi0: 'local-lvm:1' });
    return harness;
  }

  const start = (harness: SimHarness) => harness.call('POST', '/nodes/pve1/qemu/100/status/start');
  const isRunning = (harness: SimHarness) => harness.sim.inspect().vms[0]?.running;

  it('an error is answered and nothing done, once', async () => {
    const harness = await withVm();
    harness.sim.faults.add({
      endpoint: START,
      kind: 'error',
      status: 596,
      message: 'Connection timed out',
    });
    const answer = await start(harness);
    expect([answer.status, answer.reason, answer.body]).toEqual([596, 'Connection timed out', '']);
    expect(await harness.waitForTask(await start(harness))).toBe('OK');
    expect(harness.sim.faults.injectedCount).toBe(1);
  });

  it('a lost answer leaves the work done', async () => {
    const harness = await withVm();
    harness.sim.faults.add({ endpoint: START, kind: 'response-lost' });
    await expect(start(harness)).rejects.toBeInstanceOf(SimConnectionError);
    await harness.clock.advance(10_000);
    expect(isRunning(harness)).toBe(true);
  });

  it('delays and hangs take their time', async () => {
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

  it('a host may die before or after it did what it was asked', async () => {
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
    const answer = await harness.send({
      method: 'GET',
      target: '/api2/json/version',
      host: 'pve3',
    });
    expect(answer.status).toBe(200);
  });

  it('strikes by chance when told so, and can be disarmed', async () => {
    const harness = await withVm();
    harness.sim.faults.add({
      kind: 'error',
      probability: 0.5,
      times: 1000,
      endpoint: 'GET /version',
    });
    const statuses = [];
    for (let turn = 0; turn < 40; turn += 1)
      statuses.push((await harness.call('GET', '/version')).status);
    expect(new Set(statuses)).toEqual(new Set([200, 500]));
    harness.sim.faults.clear();
    const disarm = harness.sim.faults.add({ kind: 'error' });
    disarm();
    expect((await harness.call('GET', '/version')).status).toBe(200);
  });
});

describe('a person at the console', () => {
  it('renames, retags, moves, copies and deletes without asking', async () => {
    const harness = new SimHarness({ cluster: testCluster(2) });
    await harness.createVm(100, {
      name: 'ours',
      tags: 'ours',
      description: 'marker',
      scsi0: 'local-lvm:1',
      net0: 'virtio,bridge=vmbr0',
    });
    const { externalChanges } = harness.sim;
    externalChanges.copy(100, 500);
    const [ours, copy] = harness.sim.inspect().vms;
    expect(copy?.config).toMatchObject({
      name: 'ours',
      tags: 'ours',
      description: 'marker',
      scsi0: 'local-lvm:vm-500-disk-0,size=1G',
    });
    expect(copy?.config['smbios1']).not.toBe(ours?.config['smbios1']);
    expect(copy?.config['net0']).not.toBe(ours?.config['net0']);
    externalChanges.rename(100, 'theirs');
    externalChanges.retag(100, ['B', 'a']);
    externalChanges.describe(100, 'other');
    externalChanges.migrate(100, 'pve2');
    externalChanges.start(100);
    const { data } = await harness.call('GET', '/nodes/pve2/qemu/100/config');
    expect(data).toMatchObject({ name: 'theirs', tags: 'a;b', description: 'other' });
    externalChanges.stop(100);
    externalChanges.start(100);
    externalChanges.delete(100);
    expect(harness.sim.inspect().vms.map(({ id }) => id)).toEqual([500]);
    expect(harness.sim.inspect().volumes.some(({ vmId }) => vmId === 100)).toBe(false);
    expect(() => externalChanges.rename(100, 'x')).toThrow('nobody has a VM 100');
  });

  it('a host that comes back starts what starts at boot', async () => {
    const harness = new SimHarness({ cluster: testCluster(3) });
    await harness.call('POST', '/nodes/pve2/qemu', { vmid: 100, onboot: 1 });
    await harness.call('POST', '/nodes/pve2/qemu', { vmid: 101 });
    await harness.clock.advance(10_000);
    harness.sim.externalChanges.hostDown('pve2');
    harness.sim.externalChanges.hostUp('pve2');
    expect(harness.sim.inspect().vms.map(({ running }) => running)).toEqual([true, false]);
  });
});

describe('a saved state', () => {
  it('is the same cluster again', async () => {
    const harness = new SimHarness();
    await harness.createVm(100, {
      name: 'kept',
      scsi0: 'local-lvm:0,import-from=local:import/noble-with-agent.qcow2',
      agent: 1,
    });
    const start = await harness.call('POST', '/nodes/pve1/qemu/100/status/start');
    await harness.waitForTask(start);
    await harness.call('POST', '/pools', { poolid: 'kept' });
    const saved = JSON.parse(JSON.stringify(harness.sim.saveState()));
    const other = new SimHarness();
    other.sim.loadState(saved);
    expect(other.sim.inspect().vms).toEqual(harness.sim.inspect().vms);
    expect(other.sim.inspect().volumes).toEqual(harness.sim.inspect().volumes);
    expect((await other.call('GET', '/pools')).data).toEqual([{ poolid: 'kept' }]);
    expect(
      (await other.call('GET', `/nodes/pve1/tasks/${start.data}/status`)).data.exitstatus,
    ).toBe('OK');
    await other.clock.advance(120_000);
    expect((await other.call('POST', '/nodes/pve1/qemu/100/agent/ping')).status).toBe(200);
  });
});

describe('determinism and size', () => {
  it('the same seed gives the same run', async () => {
    const run = async () => {
      const harness = new SimHarness();
      await harness.createVm(100, { net0: 'virtio,bridge=vmbr0', scsi0: 'local-lvm:1' });
      await harness.waitForTask(await harness.call('POST', '/nodes/pve1/qemu/100/status/start'));
      return JSON.stringify([
        harness.sim.inspect().vms,
        (await harness.call('GET', '/cluster/tasks')).body,
      ]);
    };
    expect(await run()).toBe(await run());
  });

  it('keeps a bounded number of ended tasks', async () => {
    const harness = new SimHarness();
    const rounds = TASK_ARCHIVE_SIZE * 2;
    for (let round = 0; round < rounds; round += 1) {
      await harness.sim.handle({
        method: 'POST',
        target: '/api2/json/nodes/pve1/qemu/999/status/start',
        headers: { authorization: harness.authorization },
      });
    }
    await harness.clock.advance(10);
    expect(harness.sim.inspect().tasksStarted).toBe(rounds);
    expect(harness.sim.saveState().tasks.length).toBeLessThanOrEqual(TASK_ARCHIVE_SIZE * 1.25);
    expect(harness.sim.inspect().runningTasks).toEqual([]);
    expect(harness.sim.inspect().heldLocks).toEqual([]);
    expect(harness.clock.sleeping).toBe(0);
  });
});
