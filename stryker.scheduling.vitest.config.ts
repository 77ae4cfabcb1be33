// SPDX-License-Identifier: Apache-2.0
// The tests that mutants of src/scheduling are held against.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/scheduling/**/*.test.ts'],
    // Thousands of random clusters for each mutant would take hours, and examples kill what they kill.
    exclude: ['src/scheduling/properties.test.ts'],
    setupFiles: ['test/support/node-guard.ts'],
    pool: 'threads',
    isolate: false,
    testTimeout: 30_000,
  },
});
