// SPDX-License-Identifier: Apache-2.0
// Tests the autoscaler's soak itself: a seed has no violation, and deliberate defects of a process are detected.
import { describe, expect, it } from 'vitest';
import type { Fleet } from '../../src/fleet/index.ts';
import { runAutoscalerSeed } from './autoscaler-scenario.ts';
import type { ProcessMutation } from './autoscaler-site.ts';

const TIMEOUT_MS = 900_000;
const SEED = 1;

/** The same object with some methods replaced. */
function replaceMethods<T extends object>(original: T, methods: Partial<T>): T {
  return new Proxy(original, {
    get: (target, key) => {
      const replaced: unknown = Reflect.get(methods, key) ?? Reflect.get(target, key);
      return typeof replaced === 'function' ? replaced.bind(target) : replaced;
    },
  });
}

const MUTATIONS: Readonly<Record<string, ProcessMutation & { readonly detectedAs: RegExp }>> = {
  'machines are deleted without a drain': {
    detectedAs: /was stopped with running pods/,
    fleet: (fleet: Fleet) =>
      replaceMethods(fleet, {
        drain: ({ machines, ...why }) =>
          fleet.remove(
            machines.map(({ id }) => id),
            why,
          ),
      }),
  },
  'all machines are drained when one is meant, and the drains are not checked': {
    detectedAs: /fits on no other node/,
    checkDrain: () => Promise.resolve({ ok: true }),
    fleet: (fleet: Fleet) =>
      replaceMethods(fleet, {
        drain: ({ machines, ...why }) => {
          const ready = fleet.view.machines.all().filter(({ phase }) => phase === 'ready');
          const reason = machines[0]?.reason ?? '';
          return fleet.drain({ ...why, machines: ready.map(({ id }) => ({ id, reason })) });
        },
      }),
  },
};

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
  it.each(Object.entries(MUTATIONS))(
    'detects the mutation: %s',
    async (_name, { detectedAs, ...mutation }) => {
      const { violations } = await runAutoscalerSeed(SEED, mutation);
      expect(violations.join('\n')).toMatch(detectedAs);
    },
    TIMEOUT_MS,
  );
});
