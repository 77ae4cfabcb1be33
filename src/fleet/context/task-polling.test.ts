// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { TaskPolling } from './polling.ts';

/** Polls a task of this duration from its start; returns the ages at which it was polled. */
function poll(polling: TaskPolling, durationMs: number): readonly number[] {
  const ages: number[] = [];
  let ageMs = 0;
  for (;;) {
    ageMs += Math.ceil(polling.nextPollMs('workers clone', ageMs));
    ages.push(ageMs);
    if (ageMs >= durationMs) break;
  }
  polling.ended('workers clone', ageMs);
  return ages;
}

describe('TaskPolling', () => {
  it('polls twice a second while no duration is known', () => {
    expect(new TaskPolling().nextPollMs('workers clone', 0)).toBe(500);
  });

  it('polls a task of a known kind rarely until it can have ended, and often from then on', () => {
    const polling = new TaskPolling();
    poll(polling, 4_000);
    const ages = poll(polling, 4_000);
    expect(ages.length).toBeLessThanOrEqual(4);
    expect(ages[0]).toBeGreaterThanOrEqual(0.95 * 4_000);
    expect(ages.at(-1)).toBeLessThanOrEqual(4_200);
  });

  it('polls a task that may have ended at intervals of a twentieth of its age, within limits', () => {
    const polling = new TaskPolling();
    polling.ended('workers clone', 4_000);
    const intervals = [3_800, 6_000, 60_000].map((age) => polling.nextPollMs('workers clone', age));
    expect(intervals).toEqual([190, 300, 500]);
  });

  it('polls a long task early, because a task that fails does so early', () => {
    const polling = new TaskPolling();
    polling.ended('workers clone', 120_000);
    expect(polling.nextPollMs('workers clone', 0)).toBe(5_000);
    expect(polling.nextPollMs('workers clone', 5_000)).toBe(1_000);
    expect(polling.nextPollMs('workers clone', 113_000)).toBeLessThanOrEqual(1_000);
  });

  it('adapts at once to tasks that become faster, and gradually to tasks that become slower', () => {
    const polling = new TaskPolling();
    polling.ended('workers clone', 10_000);
    polling.ended('workers clone', 2_000);
    expect(polling.nextPollMs('workers clone', 0)).toBe(0.95 * 2_000);
    polling.ended('workers clone', 10_000);
    expect(polling.nextPollMs('workers clone', 0)).toBeCloseTo(0.95 * 3_600);
  });

  it('learns the duration of each kind of task separately', () => {
    const polling = new TaskPolling();
    polling.ended('workers clone', 10_000);
    expect(polling.nextPollMs('workers start', 0)).toBe(500);
  });

  it('never polls a task more often than every 100 ms', () => {
    const polling = new TaskPolling();
    polling.ended('workers start', 10);
    for (const ageMs of [0, 5, 9, 10, 50, 1_000, 60_000]) {
      expect(polling.nextPollMs('workers start', ageMs)).toBeGreaterThanOrEqual(
        ageMs < 9 ? 0 : 100,
      );
    }
  });
});
