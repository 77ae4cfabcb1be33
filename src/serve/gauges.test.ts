// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { PassReport } from '../fleet/index.ts';
import { Unauthorized, Unreachable } from '../ports/errors.ts';
import { aMachine } from '../ports/fakes/sample-records.ts';
import type { Meters } from '../ports/meters.ts';
import { setGauges } from './gauges.ts';

const STATUS = {
  pools: [],
  removedPools: [],
  drains: [],
  machines: [],
  openIntents: 0,
  driver: undefined,
};

const STANDBY = {
  status: STATUS,
  lastPass: undefined,
  capacity: undefined,
  leadingSince: undefined,
  now: 100_000,
  regions: ['lab'],
  hasCluster: true,
};

const PASS: PassReport = {
  stale: {},
  errors: {},
  undecided: [],
  inProgress: 0,
  orphans: [],
  nextPassAt: 0,
  seenAt: { regions: {}, cluster: undefined },
};

type GaugeInput = Parameters<typeof setGauges>[1];

function gauge(wanted: string, input: Partial<GaugeInput>): unknown {
  let found: unknown;
  const meters: Meters = {
    add: () => undefined,
    observe: () => undefined,
    set: (name, values) => {
      if (name === wanted) found = values;
    },
  };
  setGauges(meters, { ...STANDBY, ...input });
  return found;
}

function viewAges(lastPass: PassReport | undefined, leadingSince: number | undefined) {
  return gauge('pvescaler_view_age_seconds', { lastPass, leadingSince });
}

describe('pvescaler_view_age_seconds', () => {
  it('counts from the start of driving for a source that was never read, and is absent on standby', () => {
    const ages = (proxmox: number, kubernetes: number) => [
      { labels: { source: 'proxmox', region: 'lab' }, value: proxmox },
      { labels: { source: 'kubernetes', region: '' }, value: kubernetes },
    ];
    expect(viewAges(undefined, 40_000)).toEqual(ages(60, 60));
    const seenAt = { regions: { lab: 90_000 }, cluster: undefined };
    expect(viewAges({ ...PASS, seenAt }, 40_000)).toEqual(ages(10, 60));
    expect(viewAges(undefined, undefined)).toEqual([]);
    expect(viewAges({ ...PASS, seenAt }, undefined)).toEqual([]);
  });
});

describe('pvescaler_machine_phase_age_seconds', () => {
  it('is the age of the oldest machine in each phase that ends by itself', () => {
    const machines = [
      aMachine({ phase: 'deleting', phaseSince: 30_000 }),
      aMachine({ phase: 'deleting', phaseSince: 10_000 }),
      aMachine({ phase: 'ready', phaseSince: 5_000 }),
    ];
    const ages = gauge('pvescaler_machine_phase_age_seconds', { status: { ...STATUS, machines } });
    const deleting = { labels: { pool: 'workers', phase: 'deleting' }, value: 90 };
    expect(ages).toContainEqual(deleting);
    expect(ages).toContainEqual({ labels: { pool: 'workers', phase: 'booting' }, value: 0 });
    expect(ages).not.toContainEqual(
      expect.objectContaining({ labels: { pool: 'workers', phase: 'ready' } }),
    );
  });
});

describe('gauges of the driver', () => {
  const driving = { leadingSince: 40_000, lastPass: PASS };

  it('tell whether the credentials of a region are refused', () => {
    const refused = (errors: PassReport['errors']) =>
      gauge('pvescaler_proxmox_credentials_refused', {
        ...driving,
        lastPass: { ...PASS, errors },
      });
    const value = (of: number) => [{ labels: { region: 'lab' }, value: of }];
    expect(refused({})).toEqual(value(0));
    expect(refused({ lab: new Unreachable('PVE_UNREACHABLE', 'no route') })).toEqual(value(0));
    expect(refused({ lab: new Unauthorized('CREDENTIALS_REFUSED', 'invalid token') })).toEqual(
      value(1),
    );
  });

  it('count the orphans of the last pass, and are absent on standby', () => {
    const orphans = [{ region: 'lab', kind: 'vm-left-alone' as const, count: 2 }];
    const lastPass = { ...PASS, orphans };
    expect(gauge('pvescaler_orphans', { ...driving, lastPass })).toEqual([
      { labels: { region: 'lab', kind: 'vm-left-alone' }, value: 2 },
    ]);
    expect(gauge('pvescaler_orphans', { lastPass })).toEqual([]);
    expect(gauge('pvescaler_proxmox_credentials_refused', { lastPass })).toEqual([]);
  });

  it('show of each host what the pool with the most may use', () => {
    const identities = { machines: 9, reason: '' };
    const pool = (name: string, cpus: number, memoryBytes: number) => ({
      pool: name,
      hosts: [{ host: 'pve1', cpus, memoryBytes, diskBytes: 1 }],
      identities,
    });
    const capacity = {
      computedAt: 1,
      regions: [{ region: 'lab', takenAt: 1, pools: [pool('a', 8, 100), pool('b', 4, 200)] }],
      counted: new Set<string>(),
      unplaced: new Map(),
    };
    const labels = { region: 'lab', host: 'pve1' };
    const input = { ...driving, capacity };
    expect(gauge('pvescaler_host_free_memory_bytes', input)).toEqual([{ labels, value: 200 }]);
    expect(gauge('pvescaler_host_free_cpus', input)).toEqual([{ labels, value: 8 }]);
    expect(gauge('pvescaler_host_free_cpus', driving)).toEqual([]);
  });
});
