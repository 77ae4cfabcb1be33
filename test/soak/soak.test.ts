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
    'runs a full day without a violation and repeats exactly',
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
    TIMEOUT_MS,
  );
});

describe('the soak', () => {
  it('has ten mutations', () => {
    expect(Object.keys(MUTATIONS)).toHaveLength(10);
  });

  it.each(Object.entries(MUTATIONS))(
    'detects the mutation: %s',
    async (_name, mutation) => {
      for (let seed = 1; seed <= MAX_SEEDS; seed += 1) {
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
