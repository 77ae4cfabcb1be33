// SPDX-License-Identifier: Apache-2.0
// The tests of one area, for Stryker.
import { defineConfig } from 'vitest/config';
import { seedProperties } from '../support/seed-properties.ts';
import { AREAS } from './areas.ts';

const { tests = [], slowTests = [] } = AREAS[process.env['MUTATION_AREA'] ?? ''] ?? {};

export default defineConfig({
  plugins: [seedProperties()],
  test: {
    include: [...tests],
    exclude: [...slowTests],
    setupFiles: ['test/support/node-guard.ts'],
    // A mutant must not be detected by chance.
    env: { PROPERTY_SEED: '1' },
    pool: 'threads',
    isolate: false,
    // They only end the run without mutants; with one, Stryker ends a test that hangs.
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
