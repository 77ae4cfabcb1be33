// SPDX-License-Identifier: Apache-2.0
// Measures the time to create machines against the minimum time of the simulated site itself.
import { benchSite, scaleTo } from './site.ts';

export interface Creation {
  readonly machines: number;
  readonly hosts: number;
  readonly wallSeconds: number;
  readonly leastSeconds: number;
  readonly overCriticalPath: number;
  readonly requestsPerMachine: number;
}

const CREATES_PER_HOST = 2;

export async function measureCreation(machines: number, hosts: number): Promise<Creation> {
  const site = await benchSite({
    hosts,
    createsPerHost: CREATES_PER_HOST,
    records: 'in memory',
  });
  try {
    const wallMs = await scaleTo(site, machines);
    const leastMs = site.sim.criticalPathMs(CREATES_PER_HOST);
    return {
      machines,
      hosts,
      wallSeconds: wallMs / 1_000,
      leastSeconds: leastMs / 1_000,
      overCriticalPath: wallMs / leastMs,
      requestsPerMachine: site.requests() / machines,
    };
  } finally {
    await site.close();
  }
}
