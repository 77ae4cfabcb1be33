// SPDX-License-Identifier: Apache-2.0
// A sample of the mutants of an area: some ranges of lines, drawn by a seed, and whether the result is sufficient.
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';

/** In percent of the mutants. */
export const THRESHOLD = 80;

const RANGE_LINES = 10;

export interface SourceFile {
  readonly path: string;
  readonly lines: number;
}

/** Ranges such as `src/a.ts:11-20`, the same for the same seed and files. */
export function drawRanges(
  files: readonly SourceFile[],
  { seed, count }: { readonly seed: number; readonly count: number },
): readonly string[] {
  const ranges = files.flatMap(({ path, lines }) =>
    Array.from({ length: Math.ceil(lines / RANGE_LINES) }, (_, at) => {
      const first = at * RANGE_LINES + 1;
      return `${path}:${first}-${Math.min(first + RANGE_LINES - 1, lines)}`;
    }),
  );
  const random = new SeededRandom(seed);
  return Array.from(
    { length: Math.min(count, ranges.length) },
    () => ranges.splice(random.integer(ranges.length), 1)[0] ?? '',
  );
}

export interface Score {
  readonly detected: number;
  readonly valid: number;
  readonly isSufficient: boolean;
}

const DETECTED: readonly string[] = ['Killed', 'Timeout'];
export const UNDETECTED: readonly string[] = ['Survived', 'NoCoverage'];

/**
 * A sample fails when it is below the threshold by more than two standard deviations of a sample of its size; otherwise
 * an area just above the threshold would fail in every second run. Of a run that ended early, mutants without coverage do
 * not count: they are reported before the first test runs, so there would be too many of them.
 */
export function scoreSample(statuses: readonly string[], isComplete: boolean): Score {
  const count = (names: readonly string[]) => statuses.filter((one) => names.includes(one)).length;
  const detected = count(DETECTED);
  const valid = detected + count(isComplete ? UNDETECTED : ['Survived']);
  const share = THRESHOLD / 100;
  const tolerance = 2 * Math.sqrt((share * (1 - share)) / valid);
  return { detected, valid, isSufficient: valid > 0 && detected / valid >= share - tolerance };
}
