// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { parseCron } from './cron.ts';

describe('cron expressions', () => {
  it.each([
    '* * * * *',
    '0 7 * * 1-5',
    '*/15 0,12 1-15/2 JAN-mar Mon,WED',
    '0 0 ? * fri-sun',
    '59 23 31 12 7',
    '5/10 * * * 0',
    ' 0  7 * * *  ',
  ])('accepts %j', (text) => {
    expect(parseCron(text).ok).toBe(true);
  });

  it.each([
    ['99 99 * * *', 'minute'],
    ['0 24 * * *', 'hour'],
    ['0 0 0 * *', 'day'],
    ['0 0 32 * *', 'day'],
    ['0 0 * 13 *', 'month'],
    ['0 0 * foo *', 'month'],
    ['0 0 * * 8', 'weekday'],
    ['0 0 * * jan', 'weekday'],
    ['a b c d e', 'minute'],
    ['*/0 * * * *', 'minute'],
    ['*/60 * * * *', 'minute'],
    ['10-5 * * * *', 'minute'],
    ['1-2-3 * * * *', 'minute'],
    ['1/2/3 * * * *', 'minute'],
    ['1,,2 * * * *', 'minute'],
    ['-1 * * * *', 'minute'],
    ['** * * * *', 'minute'],
    ['0 0 * * wed-mon', 'weekday'],
  ])('refuses %s and names the field', (text, field) => {
    const parsed = parseCron(text);
    expect(!parsed.ok && parsed.problem).toMatch(
      new RegExp(`^has an invalid ${field} field; use `),
    );
  });

  it.each(['', '* * * *', '* * * * * *', '@daily'])('refuses %j', (text) => {
    expect(parseCron(text)).toEqual({
      ok: false,
      problem: 'must have five fields: minute, hour, day, month, weekday',
    });
  });
});
