// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SimConnectionError } from '../http/messages.ts';
import { Bench, testCluster } from '../support/bench.ts';
import { TASK_ARCHIVE_SIZE } from '../tasks/engine.ts';

describe('faults', () => {
  const START = 'POST /nodes/{node}/qemu/{vmid}/status/start';

  async function withVm(): Promise<Bench> {
    const bench = new Bench({ cluster: testCluster(3) });
    await bench.vm(100, { scsi0: 'local-lvm:1' });
    return bench;
  }

  const start = (bench: Bench) => bench.call('POST', '/nodes/pve1/qemu/100/status/start');
  const isRunning = (bench: Bench) => bench.sim.inspect().vms[0]?.running;

  it('an error is answered and nothing done, once', async () => {
    const bench = await withVm();
    bench.sim.faults.add({
      endpoint: START,
      kind: 'error',
      status: 596,
      message: 'Connection timed out',
    });
    const answer = await start(bench);
    expect([answer.status, answer.reason, answer.body]).toEqual([596, 'Connection timed out', '']);
    expect(await bench.task(await start(bench))).toBe('OK');
    expect(bench.sim.faults.struck).toBe(1);
  });

  it('a lost answer leaves the work done', async () => {
    const bench = await withVm();
    bench.sim.faults.add({ endpoint: START, kind: 'lost' });
    await expect(start(bench)).rejects.toBeInstanceOf(SimConnectionError);
    await bench.clock.advance(10_000);
    expect(isRunning(bench)).toBe(true);
  });

  it('delays and hangs take their time', async () => {
    const bench = await withVm();
    bench.sim.faults.add({ kind: 'delay', delayMs: 7000, vmId: 100 });
    const before = bench.clock.now();
    await bench.call('GET', '/nodes/pve1/qemu/100/config');
    expect(bench.clock.now() - before).toBe(7000);
    bench.sim.faults.add({ kind: 'answer-delayed', delayMs: 5000, endpoint: 'GET /nodes/*' });
    await bench.call('GET', '/nodes/pve1/version');
    expect(bench.clock.now() - before).toBe(12_000);
    bench.sim.faults.add({ endpoint: START, kind: 'hang' });
    await expect(start(bench)).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(isRunning(bench)).toBe(false);
  });

  it('a host may die before or after it did what it was asked', async () => {
    const bench = await withVm();
    bench.sim.faults.add({
      endpoint: 'POST /nodes/{node}/qemu',
      host: 'pve2',
      kind: 'host-down-after',
    });
    expect(
      (await bench.call('POST', '/nodes/pve2/qemu', { vmid: 300, scsi0: 'local-lvm:1' })).status,
    ).toBe(595);
    await bench.clock.advance(60_000);
    expect(bench.sim.inspect().vms.find(({ id }) => id === 300)?.config).toEqual({
      lock: 'create',
    });
    bench.sim.faults.add({ kind: 'host-down', host: 'pve1' });
    await expect(start(bench)).rejects.toMatchObject({ code: 'ECONNRESET' });
    await expect(start(bench)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    const answer = await bench.raw({ method: 'GET', target: '/api2/json/version', host: 'pve3' });
    expect(answer.status).toBe(200);
  });

  it('strikes by chance when told so, and can be disarmed', async () => {
    const bench = await withVm();
    bench.sim.faults.add({
      kind: 'error',
      probability: 0.5,
      times: 1000,
      endpoint: 'GET /version',
    });
    const statuses = [];
    for (let turn = 0; turn < 40; turn += 1)
      statuses.push((await bench.call('GET', '/version')).status);
    expect(new Set(statuses)).toEqual(new Set([200, 500]));
    bench.sim.faults.clear();
    const disarm = bench.sim.faults.add({ kind: 'error' });
    disarm();
    expect((await bench.call('GET', '/version')).status).toBe(200);
  });
});

describe('a person at the console', () => {
  it('renames, retags, moves, copies and deletes without asking', async () => {
    const bench = new Bench({ cluster: testCluster(2) });
    await bench.vm(100, {
      name: 'ours',
      tags: 'ours',
      description: 'marker',
      scsi0: 'local-lvm:1',
      net0: 'virtio,bridge=vmbr0',
    });
    const { meddler } = bench.sim;
    meddler.copy(100, 500);
    const [ours, copy] = bench.sim.inspect().vms;
    expect(copy?.config).toMatchObject({
      name: 'ours',
      tags: 'ours',
      description: 'marker',
      scsi0: 'local-lvm:vm-500-disk-0,size=1G',
    });
    expect(copy?.config['smbios1']).not.toBe(ours?.config['smbios1']);
    expect(copy?.config['net0']).not.toBe(ours?.config['net0']);
    meddler.rename(100, 'theirs');
    meddler.retag(100, ['B', 'a']);
    meddler.describe(100, 'other');
    meddler.migrate(100, 'pve2');
    meddler.start(100);
    const { data } = await bench.call('GET', '/nodes/pve2/qemu/100/config');
    expect(data).toMatchObject({ name: 'theirs', tags: 'a;b', description: 'other' });
    meddler.stop(100);
    meddler.start(100);
    meddler.delete(100);
    expect(bench.sim.inspect().vms.map(({ id }) => id)).toEqual([500]);
    expect(bench.sim.inspect().volumes.some(({ vmId }) => vmId === 100)).toBe(false);
    expect(() => meddler.rename(100, 'x')).toThrow('nobody has a VM 100');
  });

  it('a host that comes back starts what starts at boot', async () => {
    const bench = new Bench({ cluster: testCluster(3) });
    await bench.call('POST', '/nodes/pve2/qemu', { vmid: 100, onboot: 1 });
    await bench.call('POST', '/nodes/pve2/qemu', { vmid: 101 });
    await bench.clock.advance(10_000);
    bench.sim.meddler.hostDown('pve2');
    bench.sim.meddler.hostUp('pve2');
    expect(bench.sim.inspect().vms.map(({ running }) => running)).toEqual([true, false]);
  });
});

describe('a saved state', () => {
  it('is the same cluster again', async () => {
    const bench = new Bench();
    await bench.vm(100, {
      name: 'kept',
      scsi0: 'local-lvm:0,import-from=local:import/noble-with-agent.qcow2',
      agent: 1,
    });
    const start = await bench.call('POST', '/nodes/pve1/qemu/100/status/start');
    await bench.task(start);
    await bench.call('POST', '/pools', { poolid: 'kept' });
    const saved = JSON.parse(JSON.stringify(bench.sim.saveState()));
    const other = new Bench();
    other.sim.loadState(saved);
    expect(other.sim.inspect().vms).toEqual(bench.sim.inspect().vms);
    expect(other.sim.inspect().volumes).toEqual(bench.sim.inspect().volumes);
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
      const bench = new Bench();
      await bench.vm(100, { net0: 'virtio,bridge=vmbr0', scsi0: 'local-lvm:1' });
      await bench.task(await bench.call('POST', '/nodes/pve1/qemu/100/status/start'));
      return JSON.stringify([
        bench.sim.inspect().vms,
        (await bench.call('GET', '/cluster/tasks')).body,
      ]);
    };
    expect(await run()).toBe(await run());
  });

  it('keeps a bounded number of ended tasks', async () => {
    const bench = new Bench();
    const rounds = TASK_ARCHIVE_SIZE * 2;
    for (let round = 0; round < rounds; round += 1) {
      await bench.sim.handle({
        method: 'POST',
        target: '/api2/json/nodes/pve1/qemu/999/status/start',
        headers: { authorization: bench.authorization },
      });
    }
    await bench.clock.advance(10);
    expect(bench.sim.inspect().tasksStarted).toBe(rounds);
    expect(bench.sim.saveState().tasks.length).toBeLessThanOrEqual(TASK_ARCHIVE_SIZE * 1.25);
    expect(bench.sim.inspect().runningTasks).toEqual([]);
    expect(bench.sim.inspect().heldLocks).toEqual([]);
    expect(bench.clock.sleeping).toBe(0);
  });
});
