// SPDX-License-Identifier: Apache-2.0
// `npm run test:fleet`: the engine with client and simulator through crashes, faults and external changes, and as
// processes; and the tests of the soak.
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: join(import.meta.dirname, '../..'),
  test: {
    include: ['test/{fleet,soak}/**/*.test.ts'],
    setupFiles: ['test/support/node-guard.ts'],
    pool: 'threads',
    // They only end a failed test: the machine may be loaded.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    reporters: ['default', 'json'],
    outputFile: { json: '.test-results/fleet.json' },
  },
});
