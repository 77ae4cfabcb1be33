// SPDX-License-Identifier: Apache-2.0
// `npm run test:k3s`: machines of the product join a real k3s, if K3S names one.
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: join(import.meta.dirname, '../..'),
  test: {
    include: ['test/k3s/**/*.test.ts'],
    setupFiles: ['test/support/node-guard.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 120_000,
    reporters: ['default', 'json'],
    outputFile: { json: '.test-results/k3s.json' },
  },
});
