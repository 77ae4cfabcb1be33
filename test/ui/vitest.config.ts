// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/ui/**/*.test.ts'],
    globalSetup: ['test/ui/install-chromium.ts'],
    // They only end a failed test: the machine may be loaded.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // Ends a failed test only; the default is a second, in which a loaded machine may draw no frame.
    expect: { poll: { timeout: 60_000 } },
    fileParallelism: false,
    reporters: ['default', ['json', { outputFile: '.test-results/ui.json' }]],
  },
});
