// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  aRegion,
  cut,
  ok,
  refused,
  type ScriptedRegion,
  TASK,
  UPID,
} from './scripted-region.fixture.ts';
import { TaskFollower } from './task-follower.ts';

const VM = { vmId: 160, host: 'pve1' };
const STATUS = `GET /nodes/pve1/tasks/${UPID}/status`;

interface UpidParts {
  readonly type?: string;
  readonly user?: string;
}

function upid(serial: number, host = 'pve1', parts: UpidParts = {}): string {
  const { type = 'qmclone', user = 'scaler@pve!main' } = parts;
  const pid = serial.toString(16).padStart(8, '0').toUpperCase();
  return `UPID:${host}:${pid}:12345678:66A0B2C3:${type}:9000:${user}:`;
}

describe('the overview', () => {
  const RESOURCES = [
    { type: 'node', node: 'pve2', status: 'offline', maxcpu: 8, maxmem: 2 ** 34 },
    { type: 'node', node: 'pve1', status: 'online', maxcpu: 16, maxmem: 2 ** 35, cpu: 0.5 },
    {
      type: 'storage',
      node: 'pve1',
      storage: 'local',
      status: 'available',
      shared: 0,
      content: 'iso,images,import',
      maxdisk: 1_000,
      disk: 400,
    },
    { type: 'storage', node: 'pve1', storage: 'dead', status: 'unknown', shared: 1, content: '' },
    { type: 'storage', node: 'pve2', storage: 'local', status: 'available', maxdisk: 5, disk: 9 },
    {
      type: 'qemu',
      vmid: 161,
      node: 'pve1',
      name: 'k8s-a',
      status: 'running',
      tags: 'B;a',
      template: 0,
      maxcpu: 4,
      maxmem: 2 ** 33,
    },
    { type: 'qemu', vmid: 160, node: 'pve1', status: 'unknown', lock: 'create' },
    { type: 'qemu', vmid: 170, node: 'pve2', name: 'x', status: 'running', template: 1 },
    { type: 'lxc', vmid: 150, node: 'pve1', status: 'running' },
    { type: 'network', network: 'zone', node: 'pve1' },
    { type: 'pool', pool: 'k8s' },
  ];

  it('is one reading, sorted out', async () => {
    const region = aRegion({ 'GET /cluster/resources': ok(RESOURCES) });
    const view = await region.hypervisor.view();
    expect(view).toMatchObject({ region: 'home', version: '9.2.1', takenAt: region.clock.now() });
    expect(view.takenVmIds).toEqual([150, 160, 161, 170]);
    expect(view.hosts.map((host) => [host.name, host.online, host.cpus])).toEqual([
      ['pve1', true, 16],
      ['pve2', false, 8],
    ]);
    expect(view.hosts[0]?.storages).toEqual([
      expect.objectContaining({ name: 'dead', active: false, shared: true, content: [] }),
      {
        name: 'local',
        shared: false,
        active: true,
        content: ['images', 'import', 'iso'],
        totalBytes: 1_000,
        freeBytes: 600,
      },
    ]);
    expect(view.hosts[1]?.storages[0]?.freeBytes).toBe(0);
    expect(view.vms).toEqual([
      {
        ...VM,
        name: undefined,
        power: 'unknown',
        tags: [],
        isTemplate: false,
        lock: 'create',
        isBeingCreated: true,
        cpus: undefined,
        memoryBytes: undefined,
      },
      {
        vmId: 161,
        host: 'pve1',
        name: 'k8s-a',
        power: 'running',
        tags: ['a', 'b'],
        isTemplate: false,
        lock: undefined,
        isBeingCreated: false,
        cpus: 4,
        memoryBytes: 2 ** 33,
      },
      expect.objectContaining({ vmId: 170, power: 'unknown', isTemplate: true }),
    ]);
  });

  it('costs one read each time, whatever the number of VMs; the version once in a while', async () => {
    const region = aRegion({
      'GET /cluster/resources': ok(RESOURCES),
      'GET /nodes/pve1/qemu/161/config': ok({ digest: 'a', cores: 4, memory: 8_192 }),
    });
    // The first: the version too, and the configuration of a VM not seen before.
    await region.hypervisor.view();
    expect(region.transport.requests).toHaveLength(3);
    for (let turn = 0; turn < 5; turn += 1) await region.hypervisor.view();
    expect(region.transport.requests).toHaveLength(8);
    await region.clock.advance(11 * 60 * 1_000);
    await region.hypervisor.view();
    expect(region.transport.requests).toHaveLength(10);
  });

  it('is not held up by a host that does not answer', async () => {
    const region = aRegion({
      'GET /cluster/resources': ok([
        RESOURCES[1],
        { type: 'qemu', vmid: 160, node: 'pve1', status: 'unknown' },
        { type: 'qemu', vmid: 161, node: 'pve1', status: 'unknown' },
      ]),
      'GET /nodes/pve1/qemu/160/config': () => new Promise(() => undefined),
    });
    for (let turn = 0; turn < 3; turn += 1) {
      const view = await region.settled(region.hypervisor.view());
      expect(view.vms).toHaveLength(2);
    }
    expect(region.clock.monotonic()).toBeLessThan(5_100);
  });

  it('tells later calls where a VM is', async () => {
    const region = aRegion({
      'GET /cluster/resources': ok(RESOURCES),
      'POST /nodes/pve1/qemu/161/status/start': ok(UPID),
    });
    await region.hypervisor.view();
    await region.hypervisor.startVm({ vmId: 161, host: 'pve7' });
  });
});

describe('tasks', () => {
  const ended = (exitstatus?: string) => ok({ status: 'stopped', exitstatus });

  it('end with OK, warnings or a failure that is translated', async () => {
    const answers = [
      ok({ status: 'running' }),
      ended('OK'),
      ended('WARNINGS: 3'),
      ended('unable to create VM 181: config file already exists'),
      ended(),
    ];
    const region = aRegion({ [STATUS]: () => answers.shift() ?? cut(true) });
    const ask = () => region.hypervisor.task(TASK);
    await expect(ask()).resolves.toEqual({ state: 'running' });
    await expect(ask()).resolves.toEqual({
      state: 'ended',
      succeeded: true,
      warnings: 0,
      message: 'OK',
    });
    await expect(ask()).resolves.toMatchObject({ succeeded: true, warnings: 3 });
    await expect(ask()).resolves.toMatchObject({
      succeeded: false,
      message: 'unable to create VM 181: config file already exists',
      failure: { code: 'VM_ID_TAKEN', facts: { upid: UPID, host: 'pve1' } },
    });
    await expect(ask()).resolves.toMatchObject({
      succeeded: false,
      failure: { code: 'TASK_FAILED' },
    });
  });

  it('are not found when the record is gone, unreadable, or of another token', async () => {
    const gone = aRegion({
      [STATUS]: refused(400, 'Parameter verification failed.', { upid: 'no such task' }),
    });
    await expect(gone.hypervisor.task(TASK)).rejects.toMatchObject({
      code: 'TASK_NOT_FOUND',
    });
    await expect(gone.hypervisor.task({ ...TASK, upid: 'nonsense' })).rejects.toMatchObject({
      code: 'TASK_NOT_FOUND',
    });
    const others = aRegion({
      [STATUS]: refused(403, 'Permission check failed (/nodes/pve1, Sys.Audit)'),
    });
    await expect(others.hypervisor.task(TASK)).rejects.toMatchObject({
      code: 'TASK_NOT_FOUND',
    });
  });

  it('are read together when many are asked for at once', async () => {
    const running = Array.from({ length: 20 }, (_, index) => upid(index + 1));
    const done = upid(99);
    const region = aRegion({
      'GET /nodes/pve1/tasks': ok([
        ...running.map((text, index) => ({ upid: text, ...(index > 3 && { status: 'RUNNING' }) })),
        { upid: done, endtime: 5, status: 'OK' },
      ]),
      [`GET /nodes/pve1/tasks/${done}/status`]: ended('OK'),
      [`GET /nodes/pve2/tasks/${upid(7, 'pve2')}/status`]: ok({ status: 'running' }),
    });
    const asked = [...running, done, upid(7, 'pve2')];
    const statuses = await Promise.all(
      asked.map((text) => region.hypervisor.task({ ...TASK, upid: text })),
    );
    expect(statuses.filter((status) => status.state === 'running')).toHaveLength(21);
    expect(region.calls()).toHaveLength(3);
    expect(region.transport.requests[0]?.url.search).toBe('?source=active&limit=1000');
  });

  it('are asked for one by one when the list cannot be read', async () => {
    const texts = Array.from({ length: 4 }, (_, index) => upid(index + 1));
    const region = aRegion({
      'GET /nodes/pve1/tasks': refused(500, 'no'),
      ...Object.fromEntries(
        texts.map((text) => [`GET /nodes/pve1/tasks/${text}/status`, ended('OK')]),
      ),
    });
    const statuses = await Promise.all(
      texts.map((text) => region.hypervisor.task({ ...TASK, upid: text })),
    );
    expect(statuses.every((status) => status.state === 'ended')).toBe(true);
  });

  it('that run are listed by kind, ours only', async () => {
    const region = aRegion({
      'GET /nodes/pve1/tasks': ok([
        { upid: upid(1) },
        { upid: upid(2, 'pve1', { user: 'scaler@pve!old' }) },
        { upid: upid(3, 'pve1', { user: 'root@pam' }) },
        { upid: upid(4, 'pve1', { type: 'qmstart' }) },
        { upid: upid(5), endtime: 9, status: 'OK' },
      ]),
    });
    const clone = { kind: 'clone', host: 'pve1', subject: 9_000 };
    await expect(region.hypervisor.runningTasks('pve1', 'clone')).resolves.toEqual([
      { upid: upid(1), ...clone },
      { upid: upid(2, 'pve1', { user: 'scaler@pve!old' }), ...clone },
    ]);
  });

  it('tell the last lines of their log', async () => {
    const lines = Array.from({ length: 120 }, (_, n) => ({ n: n + 1, t: `line ${n + 1}` }));
    const region = aRegion({
      [`GET /nodes/pve1/tasks/${UPID}/log`]: ({ url }) => {
        const [start, limit] = ['start', 'limit'].map((key) => Number(url.searchParams.get(key)));
        return ok(lines.slice(start, (start ?? 0) + (limit ?? 0)), lines.length);
      },
    });
    await expect(region.hypervisor.taskLog(TASK, 2)).resolves.toEqual(['line 119', 'line 120']);
    await expect(region.hypervisor.taskLog(TASK, 200)).resolves.toHaveLength(120);
    expect(region.calls()).toHaveLength(3);
  });
});

describe('TaskFollower', () => {
  function following(region: ScriptedRegion) {
    return new TaskFollower(region.hypervisor, region.clock);
  }

  it('asks less and less often, through trouble, until the end', async () => {
    let asked = 0;
    const times: number[] = [];
    const region = aRegion({
      [STATUS]: () => {
        asked += 1;
        times.push(region.clock.monotonic());
        if (asked === 3) return { status: 595, reason: 'Connection refused' };
        return ok(asked < 6 ? { status: 'running' } : { status: 'stopped', exitstatus: 'OK' });
      },
    });
    const end = following(region).follow(TASK, { timeoutMs: 60_000 });
    await expect(region.settled(end)).resolves.toMatchObject({ succeeded: true });
    expect(times).toEqual([250, 750, 1_500, 2_500, 4_000, 6_000]);
    await region.clock.advance(1_000);
    expect(region.clock.sleeping).toBe(0);
  });

  it('ends with the timeout, the signal, or an answer that will not change', async () => {
    const region = aRegion({ [STATUS]: ok({ status: 'running' }) });
    const follower = following(region);
    const late = follower.follow(TASK, { timeoutMs: 3_000 });
    await expect(region.settled(late)).rejects.toMatchObject({ code: 'TASK_TIMED_OUT' });
    expect(region.clock.monotonic()).toBeLessThan(3_500);
    const abort = new AbortController();
    const calledOff = follower.follow(TASK, { timeoutMs: 1e9, signal: abort.signal });
    abort.abort();
    await expect(calledOff).rejects.toMatchObject({ code: 'CANCELLED' });
    const already = { timeoutMs: 1, signal: abort.signal };
    await expect(follower.follow(TASK, already)).rejects.toMatchObject({
      code: 'CANCELLED',
    });
    const nowhere = follower.follow({ ...TASK, upid: 'nonsense' }, { timeoutMs: 1e9 });
    await expect(region.settled(nowhere)).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' });
  });

  it('does not let a host that hangs hold up the others', async () => {
    const other = upid(1, 'pve2');
    const region = aRegion({
      [STATUS]: () => new Promise(() => undefined),
      [`GET /nodes/pve2/tasks/${other}/status`]: ok({ status: 'stopped', exitstatus: 'OK' }),
    });
    const follower = following(region);
    const hangs = follower.follow(TASK, { timeoutMs: 1_000 });
    hangs.catch(() => undefined);
    await region.clock.advance(300);
    await expect(
      region.settled(follower.follow({ ...TASK, upid: other, host: 'pve2' }, { timeoutMs: 1_000 })),
    ).resolves.toMatchObject({ succeeded: true });
    expect(region.clock.monotonic()).toBeLessThan(2_000);
  });
});

describe('rights', () => {
  it('are the names listed for the path', async () => {
    const region = aRegion({
      'GET /access/permissions': ok({ '/vms/100': { 'VM.PowerMgmt': 0, 'VM.Audit': 1 } }),
    });
    await expect(region.hypervisor.permissions('/vms/100')).resolves.toEqual([
      'VM.Audit',
      'VM.PowerMgmt',
    ]);
    await expect(region.hypervisor.permissions('/')).resolves.toEqual([]);
  });
});
