// SPDX-License-Identifier: Apache-2.0
// Measures heap growth of a driver over a virtual week. The simulated site is in the same heap; it keeps a bounded task
// archive, which is filled before the first measurement.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type BenchSite, benchSite, driveUntil, scaleTo } from './site.ts';

export interface HeapGrowth {
  readonly days: number;
  readonly scalings: number;
  readonly heapGrowthMiB: number;
}

const HOUR_MS = 3_600_000;
const LARGE_SIZE = 6;
const SMALL_SIZE = 2;

export async function measureHeap({
  days,
  warmUpScalings,
}: {
  readonly days: number;
  /** Scalings before the first measurement. */
  readonly warmUpScalings: number;
}): Promise<HeapGrowth> {
  const site = await benchSite({ hosts: 1, createsPerHost: 4, records: 'in a database' });
  try {
    for (let at = 0; at < warmUpScalings; at += 1)
      await scaleTo(site, at % 2 === 0 ? LARGE_SIZE : SMALL_SIZE);
    await idle(site);
    const before = heapMiB(site);
    const until = site.clock.now() + days * 24 * HOUR_MS;
    let scalings = 0;
    for (; site.clock.now() < until; scalings += 1) {
      await scaleTo(site, scalings % 2 === 0 ? LARGE_SIZE : SMALL_SIZE);
      await idle(site);
    }
    return { days, scalings, heapGrowthMiB: heapMiB(site) - before };
  } finally {
    await site.close();
  }
}

/** Four hours of passes without work. */
async function idle(site: BenchSite): Promise<void> {
  const until = site.clock.now() + 4 * HOUR_MS;
  await driveUntil(site, () => Promise.resolve(site.clock.now() >= until));
}

function heapMiB({ transport }: BenchSite): number {
  // The recorded requests belong to the test transport, not to the driver.
  transport.requests.length = 0;
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  collect();
  return process.memoryUsage().heapUsed / 2 ** 20;
}
