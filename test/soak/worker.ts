// SPDX-License-Identifier: Apache-2.0
// Runs the seeds it is given, one after the other, and reports each.
import { runSeed, type SeedResult } from './scenario.ts';

async function safely(seed: number): Promise<SeedResult> {
  try {
    return await runSeed(seed);
  } catch (error) {
    const violations = [`the run itself broke: ${String(error)}`];
    return { seed, violations, coverage: {}, counts: {}, hash: '' };
  }
}

process.on('message', (seed: number) => {
  void safely(seed).then((result) => process.send?.(result));
});
