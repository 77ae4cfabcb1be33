// SPDX-License-Identifier: Apache-2.0
// Whether a driver that works for a week keeps more and more in memory: the heap after the week against the heap
// after its beginning. The simulated site is in the same heap; it keeps a bounded archive, which is filled first.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type BenchSite, benchSite, driveUntil, scaleTo } from './site.ts';

export interface HeapGrowth {
  readonly days: number;
  readonly scalings: number;
  readonly heapGrowthMiB: number;
}

const HOUR_MS = 3_600_000;
const MANY = 6;
const FEW = 2;

export async function measureHeap({
  days,
  fillings,
}: {
  readonly days: number;
  /** Scalings before the first look. */
  readonly fillings: number;
}): Promise<HeapGrowth> {
  const site = await benchSite({ hosts: 1, createsPerHost: 4, records: 'in a database' });
  try {
    for (let at = 0; at < fillings; at += 1) await scaleTo(site, at % 2 === 0 ? MANY : FEW);
    await rest(site);
    const before = heapMiB(site);
    const until = site.clock.now() + days * 24 * HOUR_MS;
    let scalings = 0;
    for (; site.clock.now() < until; scalings += 1) {
      await scaleTo(site, scalings % 2 === 0 ? MANY : FEW);
      await rest(site);
    }
    return { days, scalings, heapGrowthMiB: heapMiB(site) - before };
  } finally {
    await site.close();
  }
}

/** Rounds in which nothing happens, too. */
async function rest(site: BenchSite): Promise<void> {
  const until = site.clock.now() + 4 * HOUR_MS;
  await driveUntil(site, () => Promise.resolve(site.clock.now() >= until));
}

function heapMiB({ transport }: BenchSite): number {
  // The recording of the transport is the test's, not the driver's.
  transport.requests.length = 0;
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  collect();
  return process.memoryUsage().heapUsed / 2 ** 20;
}
