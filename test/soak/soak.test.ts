// SPDX-License-Identifier: Apache-2.0
// That the soak itself can be believed: it repeats itself, and it notices each way of breaking the rules.
import { describe, expect, it } from 'vitest';
import { SABOTAGES } from './sabotage.ts';
import { runSeed, type SeedResult } from './scenario.ts';

const MOST_SEEDS = 300;
const PATIENCE_MS = 600_000;

const sound = new Map<number, Promise<SeedResult>>();

/** The same seed with the engine as it is. */
function soundSeed(seed: number): Promise<SeedResult> {
  const result = sound.get(seed) ?? runSeed(seed);
  sound.set(seed, result);
  return result;
}

describe('a seed', () => {
  it(
    'is a full day, holds, and repeats itself exactly',
    async () => {
      const first = await runSeed(10);
      expect(first.violations).toEqual([]);
      expect(first.counts['scalings']).toBeGreaterThanOrEqual(200);
      expect(first.counts['faults']).toBeGreaterThanOrEqual(20);
      expect(first.counts['crashes']).toBeGreaterThanOrEqual(5);
      expect(first.counts['hours']).toBeGreaterThanOrEqual(24);
      expect((await runSeed(10)).hash).toBe(first.hash);
      expect((await runSeed(11)).hash).not.toBe(first.hash);
    },
    PATIENCE_MS,
  );
});

describe('a sabotaged engine', () => {
  it('there are ten', () => {
    expect(Object.keys(SABOTAGES)).toHaveLength(10);
  });

  it.each(Object.entries(SABOTAGES))(
    'is caught when %s',
    async (_name, sabotage) => {
      for (let seed = 1; seed <= MOST_SEEDS; seed += 1) {
        const { violations } = await runSeed(seed, sabotage);
        if (violations.length === 0) continue;
        expect(violations.join()).not.toContain('too tame');
        expect((await soundSeed(seed)).violations).toEqual([]);
        return;
      }
      expect.fail(`not noticed in ${MOST_SEEDS} seeds`);
    },
    PATIENCE_MS,
  );
});
