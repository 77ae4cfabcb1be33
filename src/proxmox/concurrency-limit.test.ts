// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { ConcurrencyLimit } from './endpoints.ts';

describe('ConcurrencyLimit', () => {
  it('runs at most `limit` functions, queues the rest in order and drops aborted ones', async () => {
    const limit = new ConcurrencyLimit(2);
    const log: string[] = [];
    const open: (() => void)[] = [];
    const run = (name: string, signal?: AbortSignal) =>
      limit.run(async () => {
        log.push(name);
        await new Promise<void>((resolve) => {
          open.push(resolve);
        });
      }, signal);
    const abort = new AbortController();
    const first = run('a');
    const second = run('b');
    const aborted = run('c', abort.signal);
    const fourth = run('d');
    await Promise.resolve();
    abort.abort();
    await expect(aborted).rejects.toMatchObject({
      code: 'CANCELLED',
      facts: { requestSent: false },
    });
    expect(log).toEqual(['a', 'b']);
    open[0]?.();
    await first;
    await Promise.resolve();
    expect(log).toEqual(['a', 'b', 'd']);
    open[1]?.();
    open[2]?.();
    await Promise.all([second, fourth]);
    expect(limit.active).toBe(0);
    await expect(run('e', abort.signal)).rejects.toMatchObject({ code: 'CANCELLED' });
  });

  it('releases the slot of a function that failed', async () => {
    const limit = new ConcurrencyLimit(1);
    await expect(limit.run(() => Promise.reject(new Error('x')))).rejects.toThrow('x');
    await expect(limit.run(() => Promise.resolve(1))).resolves.toBe(1);
  });
});
