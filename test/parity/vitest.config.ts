// SPDX-License-Identifier: Apache-2.0
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: join(import.meta.dirname, '..', '..'),
  test: {
    include: ['test/parity/**/*.parity.ts'],
    pool: 'threads',
    testTimeout: 300_000,
    hookTimeout: 300_000,
    reporters: ['default', 'json'],
    outputFile: { json: '.test-results/parity.json' },
  },
});
