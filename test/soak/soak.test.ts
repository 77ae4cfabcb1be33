// SPDX-License-Identifier: Apache-2.0
// Tests the soak itself: a seed is repeatable, and every mutation of the engine is detected.
import { describe, expect, it } from 'vitest';
import { MUTATIONS } from './mutations.ts';
import { runSeed, type SeedResult } from './scenario.ts';

const MAX_SEEDS = 300;
const TIMEOUT_MS = 600_000;

const unmutatedResults = new Map<number, Promise<SeedResult>>();

/** The result of the same seed without a mutation. */
function runUnmutatedSeed(seed: number): Promise<SeedResult> {
  const result = unmutatedResults.get(seed) ?? runSeed(seed);
  unmutatedResults.set(seed, result);
  return result;
}

describe('a soak seed', () => {
  it(
    'runs six hours without a violation and repeats exactly',
    async () => {
      const first = await runUnmutatedSeed(1);
      expect(first.violations).toEqual([]);
      expect(first.counts['scalings']).toBeGreaterThanOrEqual(40);
      expect(first.counts['faults']).toBeGreaterThanOrEqual(2);
      expect(first.counts['crashes']).toBeGreaterThanOrEqual(2);
      expect(first.counts['hours']).toBeGreaterThanOrEqual(6);
      expect((await runSeed(1)).hash).toBe(first.hash);
      expect((await runUnmutatedSeed(2)).hash).not.toBe(first.hash);
    },
    TIMEOUT_MS,
  );
});

describe('the soak', () => {
  it('has mutations', () => {
    expect(Object.keys(MUTATIONS)).toHaveLength(20);
  });

  it.each(Object.entries(MUTATIONS))(
    'detects the mutation: %s',
    async (_name, mutation) => {
      const { firstSeed = 1 } = mutation;
      for (let seed = firstSeed; seed <= MAX_SEEDS; seed += 1) {
        const { violations } = await runSeed(seed, mutation);
        if (violations.length === 0) continue;
        expect(violations.join()).not.toContain('too few events');
        expect((await runUnmutatedSeed(seed)).violations).toEqual([]);
        return;
      }
      expect.fail(`the mutation was not detected in ${MAX_SEEDS} seeds`);
    },
    TIMEOUT_MS,
  );
});
