// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  createScriptedRegion,
  okResponse,
  type ScriptedRegion,
  TASK,
  UPID,
} from './scripted-region.fixture.ts';
import { TaskFollower } from './tasks.ts';

const STATUS = `GET /nodes/pve1/tasks/${UPID}/status`;

describe('TaskFollower', () => {
  function createFollower(region: ScriptedRegion) {
    return new TaskFollower(region.hypervisor, region.clock);
  }

  it('polls with a growing interval until the task ends, also after transient errors', async () => {
    let polls = 0;
    const times: number[] = [];
    const region = createScriptedRegion({
      [STATUS]: () => {
        polls += 1;
        times.push(region.clock.monotonic());
        if (polls === 3) return { status: 595, reason: 'Connection refused' };
        return okResponse(
          polls < 6 ? { status: 'running' } : { status: 'stopped', exitstatus: 'OK' },
        );
      },
    });
    const end = createFollower(region).follow(TASK, { timeoutMs: 60_000 });
    await expect(region.advanceUntil(end)).resolves.toMatchObject({ succeeded: true });
    expect(times).toEqual([250, 750, 1_500, 2_500, 4_000, 6_000]);
    await region.clock.advance(1_000);
    expect(region.clock.sleeping).toBe(0);
  });

  it('rejects on timeout, on abort and on a permanent error', async () => {
    const region = createScriptedRegion({ [STATUS]: okResponse({ status: 'running' }) });
    const follower = createFollower(region);
    const late = follower.follow(TASK, { timeoutMs: 3_000 });
    await expect(region.advanceUntil(late)).rejects.toMatchObject({ code: 'TASK_TIMED_OUT' });
    expect(region.clock.monotonic()).toBeLessThan(3_500);
    const abort = new AbortController();
    const aborted = follower.follow(TASK, { timeoutMs: 1e9, signal: abort.signal });
    abort.abort();
    await expect(aborted).rejects.toMatchObject({ code: 'CANCELLED' });
    const already = { timeoutMs: 1, signal: abort.signal };
    await expect(follower.follow(TASK, already)).rejects.toMatchObject({
      code: 'CANCELLED',
    });
    const invalid = follower.follow({ ...TASK, upid: 'nonsense' }, { timeoutMs: 1e9 });
    await expect(region.advanceUntil(invalid)).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' });
  });

  it('polls tasks of other hosts while one host hangs', async () => {
    const other = UPID.replace('pve1', 'pve2');
    const region = createScriptedRegion({
      [STATUS]: () => new Promise(() => undefined),
      [`GET /nodes/pve2/tasks/${other}/status`]: okResponse({
        status: 'stopped',
        exitstatus: 'OK',
      }),
    });
    const follower = createFollower(region);
    const hanging = follower.follow(TASK, { timeoutMs: 1_000 });
    const rejection = expect(hanging).rejects.toMatchObject({ code: 'TASK_TIMED_OUT' });
    await region.clock.advance(300);
    await expect(
      region.advanceUntil(
        follower.follow({ ...TASK, upid: other, host: 'pve2' }, { timeoutMs: 1_000 }),
      ),
    ).resolves.toMatchObject({ succeeded: true });
    await region.advanceUntil(rejection);
    expect(region.clock.monotonic()).toBeLessThanOrEqual(1_250);
  });
});
