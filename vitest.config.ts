// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from 'vitest/config';
import { seedProperties } from './test/support/seed-properties.ts';

export default defineConfig({
  plugins: [seedProperties()],
  test: {
    include: [
      'src/**/*.test.ts',
      'scripts/**/*.test.ts',
      'test/{cli,doctor,proxmox,ssh,kubernetes,bootstrap,system,deploy,docs,interop,mutation}/**/*.test.ts',
      'test/fleet/{lifecycle,ownership}.test.ts',
    ],
    setupFiles: ['test/support/node-guard.ts'],
    pool: 'threads',
    // They only end a failed test: the machine may be loaded.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    coverage: {
      include: ['src/**/*.ts'],
      exclude: ['src/**/*.test.ts', 'src/**/*.contract.ts', 'src/**/gen/**'],
      reporter: ['text-summary', 'json-summary'],
    },
  },
});
