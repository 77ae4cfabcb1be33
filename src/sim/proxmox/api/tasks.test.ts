// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SimHarness, testCluster } from '../testing/sim-harness.ts';

const PATH = '/nodes/pve1/qemu/100';
type Params = Parameters<SimHarness['call']>[2];

describe('task endpoints', () => {
  it('return status and log of a task, and an error for an unknown UPID', async () => {
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

  it('list tasks per host and per cluster, filtered, newest first', async () => {
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

  it('let the owner abort a task and hide it from other users', async () => {
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
