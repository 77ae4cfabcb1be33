// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import { ASK_AGAIN_MS, BootTimes, scoutingMs } from './boot-times.ts';

/** Guests that boot one after the other; what is lost of each, and how many questions it takes, on the average. */
function boots(times: BootTimes, count: number, bootMs: () => number) {
  let lateMs = 0;
  let questions = 0;
  for (let at = 0; at < count; at += 1) {
    const upAtMs = bootMs();
    const firstMs = times.firstQuestionMs;
    let askedMs = scoutingMs((at % 16).toString(16), firstMs) ?? firstMs;
    let silentMs: number | undefined;
    for (questions += 1; askedMs < upAtMs; questions += 1) {
      silentMs = askedMs;
      askedMs = Math.max(askedMs + ASK_AGAIN_MS, firstMs);
    }
    lateMs += askedMs - upAtMs;
    times.add({ silentMs, upMs: askedMs });
  }
  return { lateMs: lateMs / count, questions: questions / count };
}

const between = (random: SeededRandom, from: number, to: number) => () =>
  from + (to - from) * random.fraction();

describe('boot times', () => {
  it('ask at once while nothing is known', () => {
    expect(new BootTimes().firstQuestionMs).toBe(0);
  });

  it('say nothing of a guest that nobody saw come up', () => {
    const times = new BootTimes();
    times.add({ silentMs: undefined, upMs: 600_000 });
    expect(times.firstQuestionMs).toBe(0);
  });

  it.each([1, 2, 3, 4, 5])(
    'of guests that are alike: few questions, little lost (seed %i)',
    (seed) => {
      const times = new BootTimes();
      const alike = between(new SeededRandom(seed), 16_500, 18_700);
      boots(times, 20, alike);
      const { lateMs, questions } = boots(times, 500, alike);
      expect(questions).toBeLessThan(1.4);
      expect(lateMs).toBeLessThan(1_800);
    },
  );

  it.each([1, 2, 3, 4, 5])(
    'of guests that differ: nobody waits for the slowest (seed %i)',
    (seed) => {
      const times = new BootTimes();
      const different = between(new SeededRandom(seed), 15_000, 60_000);
      boots(times, 20, different);
      expect(boots(times, 500, different).lateMs).toBeLessThan(1_500);
    },
  );

  it('follow guests that become slower or faster', () => {
    const random = new SeededRandom(7);
    const times = new BootTimes();
    boots(times, 50, between(random, 20_000, 21_000));
    boots(times, 50, between(random, 40_000, 41_000));
    expect(boots(times, 50, between(random, 40_000, 41_000)).questions).toBeLessThan(2);
    boots(times, 100, between(random, 20_000, 21_000));
    expect(boots(times, 50, between(random, 20_000, 21_000)).lateMs).toBeLessThan(3_000);
  });

  it('take an answer that came long after the last silence for what it is', () => {
    const times = new BootTimes();
    times.add({ silentMs: 1_000, upMs: 30_000 });
    const first = times.firstQuestionMs;
    expect(first).toBeGreaterThan(29_000);
    times.add({ silentMs: 1_000, upMs: 20_000 });
    expect(times.firstQuestionMs).toBeLessThan(21_000);
    times.add({ silentMs: 1_000, upMs: 90_000 });
    expect(times.firstQuestionMs).toBeLessThan(21_000);
  });
});
