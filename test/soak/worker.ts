// SPDX-License-Identifier: Apache-2.0
// Child process of the soak: runs the seeds it receives one after the other and reports each result. Every fourth seed
// runs the autoscaler with a simulated cluster too.
import { runAutoscalerSeed } from './autoscaler-scenario.ts';
import { runSeed, type SeedResult } from './scenario.ts';

const AUTOSCALER_EVERY = 4;

async function runBoth(seed: number): Promise<SeedResult> {
  const result = await runSeed(seed);
  if (seed % AUTOSCALER_EVERY !== 0) return result;
  const { violations, counts, log } = await runAutoscalerSeed(seed);
  if (process.env['SOAK_LOG'] !== undefined) process.stderr.write(`${log.join('\n')}\n`);
  return {
    ...result,
    violations: [...result.violations, ...violations.map((text) => `autoscaler: ${text}`)],
    counts: { ...result.counts, ...counts },
  };
}

async function runSeedSafely(seed: number): Promise<SeedResult> {
  try {
    return await runBoth(seed);
  } catch (error) {
    const violations = [`the seed could not be run: ${String(error)}`];
    return { seed, violations, coverage: {}, exercised: {}, counts: {}, hash: '' };
  }
}

process.on('message', (seed: number) => {
  void runSeedSafely(seed).then((result) => process.send?.(result));
});
