// SPDX-License-Identifier: Apache-2.0
// `npm run test:interop-go`: the gRPC server against grpc-go, the implementation that the autoscaler uses.
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: join(import.meta.dirname, '../..'),
  test: {
    include: ['test/interop-go/**/*.test.ts'],
    setupFiles: ['test/support/node-guard.ts'],
    globalSetup: ['test/interop-go/build.ts'],
    pool: 'threads',
    // They only end a failed test: the machine may be loaded.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    reporters: ['default', 'json'],
    outputFile: { json: '.test-results/interop-go.json' },
  },
});
