// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { PassReport } from '../fleet/index.ts';
import type { Meters } from '../ports/meters.ts';
import { setGauges } from './gauges.ts';

function viewAges(lastPass: PassReport | undefined, leadingSince: number | undefined) {
  let ages: unknown;
  const meters: Meters = {
    add: () => undefined,
    observe: () => undefined,
    set: (name, values) => {
      if (name === 'pvescaler_view_age_seconds') ages = values;
    },
  };
  setGauges(meters, {
    status: {
      pools: [],
      removedPools: [],
      drains: [],
      machines: [],
      openIntents: 0,
      driver: undefined,
    },
    lastPass,
    leadingSince,
    now: 100_000,
    regions: ['lab'],
    hasCluster: true,
  });
  return ages;
}

describe('pvescaler_view_age_seconds', () => {
  it('counts from the start of driving for a source that was never read, and is absent on standby', () => {
    const ages = (proxmox: number, kubernetes: number) => [
      { labels: { source: 'proxmox', region: 'lab' }, value: proxmox },
      { labels: { source: 'kubernetes', region: '' }, value: kubernetes },
    ];
    expect(viewAges(undefined, 40_000)).toEqual(ages(60, 60));
    const seenAt = { regions: { lab: 90_000 }, cluster: undefined };
    expect(viewAges({ seenAt } as unknown as PassReport, 40_000)).toEqual(ages(10, 60));
    expect(viewAges(undefined, undefined)).toEqual([]);
  });
});
