// SPDX-License-Identifier: Apache-2.0
// `npm run test:e2e`: the product against a real control plane. Files run one after the other: each starts its own
// control plane, and two at the same time would slow each other down.
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { seedProperties } from '../support/seed-properties.ts';

export default defineConfig({
  plugins: [seedProperties()],
  root: join(import.meta.dirname, '../..'),
  test: {
    include: ['test/e2e/**/*.test.ts'],
    setupFiles: ['test/support/node-guard.ts'],
    globalSetup: ['test/e2e/controlplane/build.ts'],
    pool: 'forks',
    fileParallelism: false,
    // They only end a failed test: the machine may be loaded.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    reporters: ['default', 'json'],
    outputFile: { json: '.test-results/e2e.json' },
  },
});
