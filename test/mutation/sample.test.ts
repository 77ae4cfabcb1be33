// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { drawRanges, scoreSample } from './sample.ts';

describe('drawRanges', () => {
  const files = [
    { path: 'src/a.ts', lines: 25 },
    { path: 'src/b.ts', lines: 400 },
  ];

  it('draws the same ranges for the same seed, and others for another', () => {
    const drawn = drawRanges(files, { seed: 7, count: 5 });
    expect(new Set(drawn).size).toBe(5);
    expect(drawRanges(files, { seed: 7, count: 5 })).toEqual(drawn);
    expect(drawRanges(files, { seed: 8, count: 5 })).not.toEqual(drawn);
  });

  it('covers every line once when it draws everything', () => {
    const drawn = drawRanges(files, { seed: 1, count: 1_000 });
    expect(drawn).toHaveLength(43);
    expect(drawn.filter((range) => range.startsWith('src/a.ts')).sort()).toEqual([
      'src/a.ts:1-10',
      'src/a.ts:11-20',
      'src/a.ts:21-25',
    ]);
  });
});

describe('scoreSample', () => {
  const statuses = (killed: number, survived: number) => [
    ...Array.from({ length: killed }, () => 'Killed'),
    ...Array.from({ length: survived }, () => 'Survived'),
  ];

  it.each([
    [0, 0, false],
    [100, 0, true],
    [80, 20, true],
    [73, 27, true],
    [71, 29, false],
    [790, 210, true],
    [770, 230, false],
  ])('accepts %i detected and %i undetected mutants: %s', (killed, survived, isSufficient) => {
    expect(scoreSample(statuses(killed, survived), true).isSufficient).toBe(isSufficient);
  });

  it('counts a timeout as detected, missing coverage as undetected, and no ignored mutant', () => {
    const mixed = ['Timeout', 'NoCoverage', 'Ignored', 'RuntimeError'];
    expect(scoreSample(mixed, true)).toMatchObject({ detected: 1, valid: 2 });
  });

  it('does not count missing coverage when the run ended early', () => {
    const early = ['NoCoverage', 'NoCoverage', 'Killed', 'Survived'];
    expect(scoreSample(early, false)).toMatchObject({ detected: 1, valid: 2 });
  });
});
