// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { clockContract } from '../contract/clock.contract.ts';
import { randomContract } from '../contract/random.contract.ts';
import { SeededRandom } from './seeded-random.ts';
import { VirtualClock } from './virtual-clock.ts';

clockContract('virtual', () => {
  const clock = new VirtualClock();
  return { clock, advance: (ms) => clock.advance(ms) };
});
randomContract('seeded', () => new SeededRandom(42));

describe('VirtualClock', () => {
  it('wakes sleepers in the order of their times, ties in the order of their calls', async () => {
    const clock = new VirtualClock(0);
    const woken: string[] = [];
    const sleeper = async (name: string, ms: number) => {
      await clock.sleep(ms);
      woken.push(`${name}@${clock.now()}`);
    };
    const all = [
      sleeper('late', 30),
      sleeper('tie-1', 10),
      sleeper('tie-2', 10),
      sleeper('early', 5),
    ];
    await clock.advance(100);
    await Promise.all(all);
    expect(woken).toEqual(['early@5', 'tie-1@10', 'tie-2@10', 'late@30']);
    expect(clock.now()).toBe(100);
  });

  it('lets a woken sleeper sleep again inside the same advance', async () => {
    const clock = new VirtualClock(0);
    const ticks: number[] = [];
    const loop = (async () => {
      for (let tick = 0; tick < 3; tick += 1) {
        await clock.sleep(10);
        ticks.push(clock.now());
      }
    })();
    await clock.advance(25);
    expect(ticks).toEqual([10, 20]);
    expect(await clock.advanceToNext()).toBe(true);
    await loop;
    expect(ticks).toEqual([10, 20, 30]);
    expect(await clock.advanceToNext()).toBe(false);
  });

  it('removes a sleeper whose signal aborted', async () => {
    const clock = new VirtualClock(0);
    const abort = new AbortController();
    const wait = clock.sleep(10, { signal: abort.signal });
    expect(clock.sleeping).toBe(1);
    abort.abort();
    await expect(wait).rejects.toMatchObject({ code: 'CANCELLED' });
    expect(clock.sleeping).toBe(0);
  });
});

describe('SeededRandom', () => {
  it('is deterministic per seed', () => {
    const draw = (seed: number) =>
      Array.from(
        { length: 5 },
        (
          (random) => () =>
            random.uuid()
        )(new SeededRandom(seed)),
      );
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
  });
});
