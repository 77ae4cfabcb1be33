// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { effectiveLimits } from './effective-limits.ts';
import { openUntil } from './schedule-window.ts';
import { aPoolConfig } from './testing/builders.ts';

const HOUR = 3_600_000;

function end(start: string, at: string, { hours = 10, timeZone = 'UTC' } = {}): string | undefined {
  const until = openUntil({ start, durationMs: hours * HOUR, timeZone }, Date.parse(at));
  return until === undefined ? undefined : new Date(until).toISOString();
}

describe('openUntil', () => {
  it('is open from its start, for its duration', () => {
    const start = '0 7 * * 1-5';
    expect(end(start, '2026-03-04T06:59:59Z')).toBeUndefined();
    expect(end(start, '2026-03-04T07:00:00Z')).toBe('2026-03-04T17:00:00.000Z');
    expect(end(start, '2026-03-04T16:59:59Z')).toBe('2026-03-04T17:00:00.000Z');
    expect(end(start, '2026-03-04T17:00:00Z')).toBeUndefined();
    // A Saturday.
    expect(end(start, '2026-03-07T08:00:00Z')).toBeUndefined();
  });

  it.each([
    ['*/15 * * * *', '2026-03-04T06:50:00Z', '2026-03-04T07:45:00.000Z', 1],
    ['30 22 * * fri-sun', '2026-03-08T01:00:00Z', '2026-03-08T02:30:00.000Z', 4],
    ['0 0 1 jan,mar *', '2026-03-20T00:00:00Z', '2026-03-31T00:00:00.000Z', 30 * 24],
    ['0 6 13 * fri', '2026-03-06T07:00:00Z', '2026-03-06T08:00:00.000Z', 2],
    ['0 6 13 * fri', '2026-04-13T07:00:00Z', '2026-04-13T08:00:00.000Z', 2],
    ['0 0 * * 7', '2026-03-08T12:00:00Z', '2026-03-09T00:00:00.000Z', 24],
    ['5-7 3 * * *', '2026-03-04T03:30:00Z', '2026-03-04T04:07:00.000Z', 1],
  ])('%s at %s is open until %s', (start, at, until, hours) => {
    expect(end(start, at, { hours })).toBe(until);
  });

  it('uses the clock of its time zone, also after the clock changed', () => {
    const berlin = { timeZone: 'Europe/Berlin', hours: 2 };
    expect(end('0 7 * * *', '2026-03-28T06:30:00Z', berlin)).toBe('2026-03-28T08:00:00.000Z');
    expect(end('0 7 * * *', '2026-03-29T05:30:00Z', berlin)).toBe('2026-03-29T07:00:00.000Z');
    const night = { timeZone: 'Europe/Berlin', hours: 10 };
    expect(end('0 22 * * *', '2026-03-29T06:00:00Z', night)).toBe('2026-03-29T07:00:00.000Z');
  });
});

it('the first open window replaces the limits of the pool', () => {
  const window = (name: string, min: number) => ({
    name,
    start: '0 12 * * *',
    duration: '1h',
    min,
  });
  const pool = aPoolConfig({
    limits: { min: 1, max: 9 },
    schedules: [
      { ...window('early', 7), start: '0 11 * * *' },
      window('noon', 5),
      window('too', 6),
    ],
  });
  const at = Date.parse('2026-03-04T12:30:00Z');
  expect(effectiveLimits(pool, at)).toEqual({
    min: 5,
    max: 9,
    schedule: 'noon',
    until: at + HOUR / 2,
  });
  expect(effectiveLimits(pool, at + HOUR)).toEqual({ min: 1, max: 9 });
});
