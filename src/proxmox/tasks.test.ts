// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  createScriptedRegion,
  errorResponse,
  failConnection,
  okResponse,
  TASK,
  UPID,
} from './scripted-region.fixture.ts';

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

describe('task', () => {
  const ended = (exitstatus?: string) => okResponse({ status: 'stopped', exitstatus });

  it('returns running, success, success with warnings, or a translated failure', async () => {
    const responses = [
      okResponse({ status: 'running' }),
      ended('OK'),
      ended('WARNINGS: 13'),
      ended('disk full, WARNINGS: 1'),
      ended('unable to create VM 181: config file already exists'),
      ended(),
    ];
    const region = createScriptedRegion({
      [STATUS]: () => responses.shift() ?? failConnection(true),
      [`GET /nodes/pve1/tasks/${UPID}/log`]: okResponse([]),
    });
    const readTask = () => region.hypervisor.task(TASK);
    await expect(readTask()).resolves.toEqual({ state: 'running' });
    await expect(readTask()).resolves.toEqual({
      state: 'ended',
      succeeded: true,
      warnings: 0,
      message: 'OK',
    });
    await expect(readTask()).resolves.toMatchObject({ succeeded: true, warnings: 13 });
    await expect(readTask()).resolves.toMatchObject({ succeeded: false });
    await expect(readTask()).resolves.toMatchObject({
      succeeded: false,
      message: 'unable to create VM 181: config file already exists',
      failure: { code: 'VM_ID_TAKEN', facts: { upid: UPID, host: 'pve1' } },
    });
    await expect(readTask()).resolves.toMatchObject({
      succeeded: false,
      message: 'the task ended without an exit status',
      failure: { code: 'TASK_FAILED' },
    });
  });

  const LOG = `GET /nodes/pve1/tasks/${UPID}/log`;
  const logOf = (...lines: string[]) =>
    okResponse(
      lines.map((t, index) => ({ n: index + 1, t })),
      lines.length,
    );

  it.each([
    [
      'NO_STORAGE_SPACE',
      "unable to create VM 160 - cannot import from 'local:import/a.qcow2' - copy failed: command '/usr/bin/qemu-img convert -p -n' failed: exit code 1",
      'qemu-img: error while writing at byte 2097152: No space left on device',
    ],
    ['TASK_FAILED', 'download failed: exit code 8', '2026-11-15 10:00:00 ERROR 404: Not Found.'],
  ])('has the cause from the log, with the class %s', async (code, exitStatus, cause) => {
    const log = ['transferred 0.0 B of 3.0 GiB (0.00%)', cause, 'temporary volume removed'];
    const region = createScriptedRegion({
      [STATUS]: ended(exitStatus),
      [LOG]: logOf(...log, `TASK ERROR: ${exitStatus}`),
    });
    const message = `${exitStatus}: ${cause}`;
    await expect(region.hypervisor.task(TASK)).resolves.toMatchObject({
      message,
      failure: { code, message: `task qmcreate 160 on pve1: ${message}` },
    });
  });

  it('has the exit status alone when the log names no cause or cannot be read', async () => {
    for (const log of [logOf('TASK ERROR: exit code 1'), errorResponse(500, 'no')]) {
      const region = createScriptedRegion({ [STATUS]: ended('exit code 1'), [LOG]: log });
      const status = region.advanceUntil(region.hypervisor.task(TASK));
      await expect(status).resolves.toMatchObject({ message: 'exit code 1' });
    }
  });

  it('does not repeat the credentials of a URL in the log', async () => {
    const region = createScriptedRegion({
      [STATUS]: ended('download failed: exit code 6'),
      [LOG]: logOf('https://user:pass-word@images.example/a: Authorization failed.'),
    });
    await expect(region.hypervisor.task(TASK)).resolves.toMatchObject({
      message: 'download failed: exit code 6: https://***@images.example/a: Authorization failed.',
    });
  });

  it('fails with TASK_NOT_FOUND for a missing record, an invalid UPID and a task of another token', async () => {
    const withoutRecord = createScriptedRegion({
      [STATUS]: errorResponse(400, 'Parameter verification failed.', { upid: 'no such task' }),
    });
    await expect(withoutRecord.hypervisor.task(TASK)).rejects.toMatchObject({
      code: 'TASK_NOT_FOUND',
    });
    await expect(
      withoutRecord.hypervisor.task({ ...TASK, upid: 'nonsense' }),
    ).rejects.toMatchObject({
      code: 'TASK_NOT_FOUND',
    });
    const ofOtherToken = createScriptedRegion({
      [STATUS]: errorResponse(403, 'Permission check failed (/nodes/pve1, Sys.Audit)'),
    });
    await expect(ofOtherToken.hypervisor.task(TASK)).rejects.toMatchObject({
      code: 'TASK_NOT_FOUND',
    });
  });

  it('answers many concurrent queries with one list per host', async () => {
    const running = Array.from({ length: 20 }, (_, index) => upid(index + 1));
    const done = upid(99);
    const region = createScriptedRegion({
      'GET /nodes/pve1/tasks': okResponse([
        ...running.map((text, index) => ({ upid: text, ...(index > 3 && { status: 'RUNNING' }) })),
        { upid: done, endtime: 5, status: 'OK' },
      ]),
      [`GET /nodes/pve1/tasks/${done}/status`]: ended('OK'),
      [`GET /nodes/pve2/tasks/${upid(7, 'pve2')}/status`]: okResponse({ status: 'running' }),
    });
    const upids = [...running, done, upid(7, 'pve2')];
    const statuses = await Promise.all(
      upids.map((text) => region.hypervisor.task({ ...TASK, upid: text })),
    );
    expect(statuses.filter((status) => status.state === 'running')).toHaveLength(21);
    expect(region.requestLines()).toHaveLength(3);
    expect(region.transport.requests[0]?.url.search).toBe('?source=active&limit=1000');
  });

  it('queries each task when the list cannot be read', async () => {
    const texts = Array.from({ length: 4 }, (_, index) => upid(index + 1));
    const region = createScriptedRegion({
      'GET /nodes/pve1/tasks': errorResponse(500, 'no'),
      ...Object.fromEntries(
        texts.map((text) => [`GET /nodes/pve1/tasks/${text}/status`, ended('OK')]),
      ),
    });
    const statuses = await Promise.all(
      texts.map((text) => region.hypervisor.task({ ...TASK, upid: text })),
    );
    expect(statuses.every((status) => status.state === 'ended')).toBe(true);
  });

  it('runningTasks returns only tasks of one kind that our user started', async () => {
    const region = createScriptedRegion({
      'GET /nodes/pve1/tasks': okResponse([
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

  it('taskLog returns the last lines of the log', async () => {
    const lines = Array.from({ length: 120 }, (_, n) => ({ n: n + 1, t: `line ${n + 1}` }));
    const region = createScriptedRegion({
      [`GET /nodes/pve1/tasks/${UPID}/log`]: ({ url }) => {
        const [start, limit] = ['start', 'limit'].map((key) => Number(url.searchParams.get(key)));
        return okResponse(lines.slice(start, (start ?? 0) + (limit ?? 0)), lines.length);
      },
    });
    await expect(region.hypervisor.taskLog(TASK, 2)).resolves.toEqual(['line 119', 'line 120']);
    await expect(region.hypervisor.taskLog(TASK, 200)).resolves.toHaveLength(120);
    expect(region.requestLines()).toHaveLength(3);
  });
});
