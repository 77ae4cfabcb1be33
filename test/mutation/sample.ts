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

/** A tested mutant; the line starts at 1. */
export interface SampledMutant {
  readonly status: string;
  readonly fileName: string;
  readonly location: { readonly start: { readonly line: number } };
}

const DETECTED: readonly string[] = ['Killed', 'Timeout'];
export const UNDETECTED: readonly string[] = ['Survived', 'NoCoverage'];

/** Without those that no test reaches, which are reported before the first test runs. */
export function countTested(mutants: readonly Pick<SampledMutant, 'status'>[]): number {
  return mutants.filter(({ status }) => [...DETECTED, 'Survived'].includes(status)).length;
}

/**
 * A sample fails when it is below the threshold by more than two standard errors; otherwise an area just above the
 * threshold would fail in every second run. Of a run that ended early, mutants without coverage do not count: they are
 * reported before the first test runs, so there would be too many of them.
 */
export function scoreSample(mutants: readonly SampledMutant[], isComplete: boolean): Score {
  const undetected = isComplete ? UNDETECTED : ['Survived'];
  const ranges = [...Map.groupBy(mutants, rangeOf).values()].map((inRange): Counts => {
    const count = (names: readonly string[]) =>
      inRange.filter(({ status }) => names.includes(status)).length;
    const detected = count(DETECTED);
    return { detected, valid: detected + count(undetected) };
  });
  const total = addCounts(ranges);
  const { detected, valid } = total;
  const share = THRESHOLD / 100;
  const isSufficient = valid > 0 && detected / valid >= share - 2 * standardError(ranges, total);
  return { detected, valid, isSufficient };
}

type Counts = Pick<Score, 'detected' | 'valid'>;

function rangeOf({ fileName, location }: SampledMutant): string {
  return `${fileName}:${Math.ceil(location.start.line / RANGE_LINES)}`;
}

function addCounts(all: readonly Counts[]): Counts {
  return all.reduce(
    (sum, { detected, valid }) => ({ detected: sum.detected + detected, valid: sum.valid + valid }),
    { detected: 0, valid: 0 },
  );
}

/**
 * Mutants of one range are often detected or missed together, so the ranges are what was drawn (cluster sampling with
 * the ratio estimator), not the mutants. Not less than the error of independent mutants: few ranges may agree by chance.
 */
function standardError(ranges: readonly Counts[], { detected, valid }: Counts): number {
  const share = THRESHOLD / 100;
  const independent = Math.sqrt((share * (1 - share)) / valid);
  const drawn = ranges.filter((range) => range.valid > 0);
  if (drawn.length < 2) return independent;
  const squares = drawn.map((range) => (range.detected - (detected / valid) * range.valid) ** 2);
  const variance =
    (squares.reduce((sum, one) => sum + one, 0) * drawn.length) / (drawn.length - 1) / valid ** 2;
  return Math.max(independent, Math.sqrt(variance));
}
