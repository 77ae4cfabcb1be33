// SPDX-License-Identifier: Apache-2.0
// Measures the requests of an idle fleet: its machines are adopted from the site and then unchanged.
import { isPhaseSettled, type Machine } from '../../src/model/machine.ts';
import { benchSite, driveUntil } from './site.ts';

export interface Steady {
  readonly machines: number;
  readonly requestsPerMinute: number;
}

const MINUTE_MS = 60_000;
/** Longer than every periodic task of the engine. */
const SETTLING_MS = 6 * MINUTE_MS;
const HOSTS = 10;

function isSettled(machine: Machine): boolean {
  return machine.phase === 'ready' && isPhaseSettled(machine);
}

export async function measureSteady(machines: number, minutes: number): Promise<Steady> {
  const site = await benchSite({
    hosts: HOSTS,
    machines,
    createsPerHost: 2,
    records: 'in memory',
  });
  try {
    await driveUntil(site, async () => {
      const status = await site.fleet.status();
      return status.machines.length === machines && status.machines.every(isSettled);
    });
    const settledAt = site.clock.now() + SETTLING_MS;
    let before = { at: 0, requests: 0 };
    await driveUntil(site, () => {
      const at = site.clock.now();
      // Counted from the first pass after the settling time to the first pass after the measured minutes.
      if (before.at === 0 && at >= settledAt) before = { at, requests: site.requests() };
      return Promise.resolve(before.at > 0 && at - before.at >= minutes * MINUTE_MS);
    });
    const passed = (site.clock.now() - before.at) / MINUTE_MS;
    return { machines, requestsPerMinute: (site.requests() - before.requests) / passed };
  } finally {
    await site.close();
  }
}
