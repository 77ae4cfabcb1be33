// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Backoff } from './backoff.ts';
import { VirtualClock } from './fakes/virtual-clock.ts';

async function delays(fraction: number, count: number): Promise<readonly number[]> {
  const clock = new VirtualClock();
  const backoff = new Backoff({
    clock,
    random: { fraction: () => fraction },
    firstMs: 100,
    maxMs: 350,
  });
  const found: number[] = [];
  for (let attempt = 0; attempt < count; attempt += 1) {
    const since = clock.monotonic();
    const slept = backoff.sleep();
    await clock.advanceToNext();
    await slept;
    found.push(clock.monotonic() - since);
  }
  return found;
}

describe('Backoff', () => {
  it('doubles its delay up to the maximum', async () => {
    expect(await delays(1, 4)).toEqual([100, 200, 350, 350]);
  });

  it('never sleeps less than half of the current limit', async () => {
    expect(await delays(0, 4)).toEqual([50, 100, 175, 175]);
  });

  it('starts again from the first delay after a reset', async () => {
    const clock = new VirtualClock();
    const backoff = new Backoff({ clock, random: { fraction: () => 1 }, firstMs: 100, maxMs: 350 });
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const slept = backoff.sleep();
      await clock.advanceToNext();
      await slept;
    }
    backoff.reset();
    const since = clock.monotonic();
    const slept = backoff.sleep();
    await clock.advanceToNext();
    await slept;
    expect(clock.monotonic() - since).toBe(100);
  });

  it('rejects with CANCELLED when the signal aborts', async () => {
    const clock = new VirtualClock();
    const backoff = new Backoff({ clock, random: { fraction: () => 1 }, firstMs: 100, maxMs: 350 });
    await expect(backoff.sleep(AbortSignal.abort())).rejects.toMatchObject({ code: 'CANCELLED' });
  });
});
