// SPDX-License-Identifier: Apache-2.0
// Tests the autoscaler's soak itself: a seed has no violation, and deliberate defects of a process are detected.
import { describe, expect, it } from 'vitest';
import { AUTOSCALER_MUTATIONS } from './autoscaler-mutations.ts';
import { runAutoscalerSeed } from './autoscaler-scenario.ts';

const TIMEOUT_MS = 900_000;
const SEED = 1;

describe('a seed of the autoscaler soak', () => {
  it(
    'runs every pod, evicts none without a place, and leaves nothing behind',
    async () => {
      const { violations, counts } = await runAutoscalerSeed(SEED);
      expect(violations).toEqual([]);
      expect(counts.created).toBeGreaterThan(2);
      expect(counts.destroyed).toBe(counts.created);
      expect(counts.evictions).toBeGreaterThan(0);
    },
    TIMEOUT_MS,
  );
});

describe('the autoscaler soak', () => {
  it.each(Object.entries(AUTOSCALER_MUTATIONS))(
    'detects the mutation: %s',
    async (_name, { detectedAs, ...mutation }) => {
      const { violations } = await runAutoscalerSeed(SEED, mutation);
      expect(violations.join('\n')).toMatch(detectedAs);
    },
    TIMEOUT_MS,
  );
});
