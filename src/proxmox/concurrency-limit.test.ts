// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { ConcurrencyLimit } from './concurrency-limit.ts';

describe('Gate', () => {
  it('lets in so many at once, the rest in order, and forgets who gave up', async () => {
    const gate = new ConcurrencyLimit(2);
    const log: string[] = [];
    const open: (() => void)[] = [];
    const enter = (name: string, signal?: AbortSignal) =>
      gate.run(async () => {
        log.push(name);
        await new Promise<void>((resolve) => {
          open.push(resolve);
        });
      }, signal);
    const abort = new AbortController();
    const first = enter('a');
    const second = enter('b');
    const gaveUp = enter('c', abort.signal);
    const fourth = enter('d');
    await Promise.resolve();
    abort.abort();
    await expect(gaveUp).rejects.toMatchObject({
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
    expect(gate.active).toBe(0);
    await expect(enter('e', abort.signal)).rejects.toMatchObject({ code: 'CANCELLED' });
  });

  it('frees the place of one that failed', async () => {
    const gate = new ConcurrencyLimit(1);
    await expect(gate.run(() => Promise.reject(new Error('x')))).rejects.toThrow('x');
    await expect(gate.run(() => Promise.resolve(1))).resolves.toBe(1);
  });
});
