// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { countTested, drawRanges, scoreSample } from './sample.ts';

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
  const inRange = (at: number, statuses: readonly string[]) =>
    statuses.map((status) => ({
      status,
      fileName: 'src/a.ts',
      location: { start: { line: at * 10 + 1 } },
    }));
  const times = (count: number, status: string) => Array.from({ length: count }, () => status);
  const aRange = (at: number, killed: number, survived: number) =>
    inRange(at, [...times(killed, 'Killed'), ...times(survived, 'Survived')]);

  it.each([
    [0, 0, false],
    [100, 0, true],
    [80, 20, true],
    [73, 27, true],
    [71, 29, false],
    [790, 210, true],
    [770, 230, false],
  ])('accepts %i detected and %i undetected mutants: %s', (killed, survived, isSufficient) => {
    expect(scoreSample(aRange(0, killed, survived), true).isSufficient).toBe(isSufficient);
  });

  it('accepts less when the ranges differ more than independent mutants would', () => {
    const alike = Array.from({ length: 8 }, (_, at) => aRange(at, 7, 3));
    const unlike = Array.from({ length: 8 }, (_, at) =>
      at < 2 ? aRange(at, 0, 10) : aRange(at, 9, 1),
    );
    expect(scoreSample(alike.flat(), true)).toMatchObject({ detected: 56, isSufficient: false });
    expect(scoreSample(unlike.flat(), true)).toMatchObject({ detected: 54, isSufficient: true });
  });

  it('does not accept a sample whose ranges differ but are far below the threshold', () => {
    const low = Array.from({ length: 8 }, (_, at) =>
      at < 4 ? aRange(at, 0, 10) : aRange(at, 8, 2),
    );
    expect(scoreSample(low.flat(), true).isSufficient).toBe(false);
  });

  it('counts a timeout as detected, missing coverage as undetected, and no ignored mutant', () => {
    const mixed = inRange(0, ['Timeout', 'NoCoverage', 'Ignored', 'RuntimeError']);
    expect(scoreSample(mixed, true)).toMatchObject({ detected: 1, valid: 2 });
  });

  it('has tested the mutants that a test reached', () => {
    const statuses = ['Killed', 'Timeout', 'Survived', 'NoCoverage', 'Ignored', 'CompileError'];
    expect(countTested(inRange(0, statuses))).toBe(3);
  });

  it('does not count missing coverage when the run ended early', () => {
    const early = inRange(0, ['NoCoverage', 'NoCoverage', 'Killed', 'Survived']);
    expect(scoreSample(early, false)).toMatchObject({ detected: 1, valid: 2 });
  });
});
