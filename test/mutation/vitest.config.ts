// SPDX-License-Identifier: Apache-2.0
// The tests of one area, for Stryker.
import { defineConfig } from 'vitest/config';
import { AREAS } from './areas.ts';

const { tests = [], slowTests = [] } = AREAS[process.env['MUTATION_AREA'] ?? ''] ?? {};

export default defineConfig({
  test: {
    include: [...tests],
    exclude: [...slowTests],
    setupFiles: ['test/support/node-guard.ts'],
    pool: 'threads',
    isolate: false,
    // They only end the run without mutants; with one, Stryker ends a test that hangs.
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
