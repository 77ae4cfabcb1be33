// SPDX-License-Identifier: Apache-2.0
// What metrics show of the records, read when somebody asks for them.
import type { FleetStatus, PassReport, PoolStatus } from '../../fleet/index.ts';
import { type Machine, PHASES } from '../../model/machine.ts';
import type { Meters } from '../../ports/meters.ts';

interface Seen {
  readonly status: FleetStatus;
  /** Of the last round of this process. */
  readonly report: PassReport | undefined;
  readonly now: number;
}

export function setGauges(meters: Meters, { status, report, now }: Seen): void {
  const { pools, machines, openIntents } = status;
  meters.set('pvescaler_machines', machinesByPhase(pools, machines));
  meters.set('pvescaler_intents_open', [{ labels: {}, value: openIntents }]);
  meters.set(
    'pvescaler_pool_target_size',
    pools.map(({ name, target }) => ({ labels: { pool: name }, value: target })),
  );
  meters.set(
    'pvescaler_pool_limit',
    pools.flatMap(({ name, min, max }) => [
      { labels: { pool: name, bound: 'min' }, value: min },
      { labels: { pool: name, bound: 'max' }, value: max },
    ]),
  );
  setBackoff(meters, pools, now);
  meters.set('pvescaler_view_age_seconds', viewAges(report, now));
}

function setBackoff(meters: Meters, pools: readonly PoolStatus[], now: number): void {
  meters.set(
    'pvescaler_pool_backoff_seconds',
    pools.map(({ name, backoff }) => ({
      labels: { pool: name },
      value: backoff === undefined ? 0 : (backoff.until - now) / 1_000,
    })),
  );
  meters.set(
    'pvescaler_pool_consecutive_failures',
    pools.map(({ name, backoff }) => ({ labels: { pool: name }, value: backoff?.failures ?? 0 })),
  );
}

/** Every phase of every pool, also those without a machine: a series that comes and goes cannot be watched. */
function machinesByPhase(pools: readonly PoolStatus[], machines: readonly Machine[]) {
  const names = new Set([...pools.map(({ name }) => name), ...machines.map(({ pool }) => pool)]);
  return [...names].flatMap((pool) =>
    PHASES.map((phase) => ({
      labels: { pool, phase },
      value: machines.filter((one) => one.pool === pool && one.phase === phase).length,
    })),
  );
}

function viewAges(report: PassReport | undefined, now: number) {
  const regions = Object.entries(report?.seenAt.regions ?? {}).map(([region, at]) => ({
    labels: { source: 'proxmox', region },
    value: (now - at) / 1_000,
  }));
  const cluster = report?.seenAt.cluster;
  return cluster === undefined
    ? regions
    : [
        ...regions,
        { labels: { source: 'kubernetes', region: '' }, value: (now - cluster) / 1_000 },
      ];
}
