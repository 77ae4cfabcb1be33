// SPDX-License-Identifier: Apache-2.0
// Child process of the soak: runs the seeds it receives one after the other and reports each result. Every fourth seed
// runs the autoscaler with a simulated cluster and faults too, and every fourth with random workloads.
import { runAutoscalerSeed } from './autoscaler-scenario.ts';
import { runSeed, type SeedResult } from './scenario.ts';
import { runWorkloadSeed } from './workload-scenario.ts';

/** By the remainder of the seed. */
const AUTOSCALER_RUNS = [runAutoscalerSeed, undefined, undefined, runWorkloadSeed] as const;

async function runBoth(seed: number): Promise<SeedResult> {
  const result = await runSeed(seed);
  const run = AUTOSCALER_RUNS[seed % AUTOSCALER_RUNS.length];
  if (run === undefined) return result;
  const { violations, counts, log } = await run(seed);
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
