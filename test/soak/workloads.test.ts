// SPDX-License-Identifier: Apache-2.0
// Random workloads on the autoscaler with simulated Proxmox VE and Kubernetes, on virtual time. More seeds: `npm run soak`.
import { expect, it } from 'vitest';
import { runWorkloadSeed } from './workload-scenario.ts';

/** An even seed has only pods that may be evicted, an odd one others too. */
it.each([18, 19])(
  'the random workloads of seed %i run on few nodes, without churn for an hour',
  async (seed) => {
    const { violations, log, counts } = await runWorkloadSeed(seed);
    expect(violations, log.join('\n')).toEqual([]);
    expect(counts.created).toBeGreaterThan(2);
    expect(counts.destroyed).toBe(counts.created);
  },
  900_000,
);
