// SPDX-License-Identifier: Apache-2.0
// `npm run test:guest`: real guests under QEMU join the test control plane. Takes tens of minutes without KVM.
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

const HOUR_MS = 3_600_000;

export default defineConfig({
  root: join(import.meta.dirname, '../..'),
  test: {
    include: ['test/guest/**/*.test.ts'],
    setupFiles: ['test/support/node-guard.ts'],
    globalSetup: ['test/e2e/controlplane/build.ts', 'test/guest/image.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: HOUR_MS,
    hookTimeout: 120_000,
    reporters: ['default', 'json'],
    outputFile: { json: '.test-results/guest.json' },
  },
});
