// SPDX-License-Identifier: Apache-2.0
// Child process of the soak: runs the seeds it receives one after the other and reports each result.
import { runSeed, type SeedResult } from './scenario.ts';

async function runSeedSafely(seed: number): Promise<SeedResult> {
  try {
    return await runSeed(seed);
  } catch (error) {
    const violations = [`the seed could not be run: ${String(error)}`];
    return { seed, violations, coverage: {}, exercised: {}, counts: {}, hash: '' };
  }
}

process.on('message', (seed: number) => {
  void runSeedSafely(seed).then((result) => process.send?.(result));
});
