// SPDX-License-Identifier: Apache-2.0
// Gauges that are computed from the records when metrics are scraped.
import type { FleetStatus, PassReport, PoolStatus } from '../fleet/index.ts';
import { type Machine, PHASES } from '../model/machine.ts';
import type { Meters } from '../ports/meters.ts';

interface GaugeInput {
  readonly status: FleetStatus;
  /** Of this process; undefined before its first pass and on standby. */
  readonly lastPass: PassReport | undefined;
  readonly now: number;
  readonly regions: readonly string[];
  readonly hasCluster: boolean;
  /** Wall clock at which this process began to drive; undefined on standby. */
  readonly leadingSince: number | undefined;
}

export function setGauges(meters: Meters, input: GaugeInput): void {
  const { status, now } = input;
  const { pools, removedPools, machines, openIntents } = status;
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
  meters.set(
    'pvescaler_pool_lost_machines',
    pools.map(({ name, lost }) => ({
      labels: { pool: name },
      value: lost?.machines.length ?? 0,
    })),
  );
  meters.set(
    'pvescaler_removed_pool_machines',
    removedPools.map(({ name, machines: left }) => ({
      labels: { pool: name },
      value: left.length,
    })),
  );
  setBackoff(meters, pools, now);
  meters.set(
    'pvescaler_pool_pause_seconds',
    pools.map(({ name, pause }) => ({
      labels: { pool: name },
      value: pause === undefined ? 0 : (pause.until - now) / 1_000,
    })),
  );
  meters.set('pvescaler_view_age_seconds', viewAges(input));
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

/** Every phase of every pool, including empty ones: alerts need series that do not disappear. */
function machinesByPhase(pools: readonly PoolStatus[], machines: readonly Machine[]) {
  const names = new Set([...pools.map(({ name }) => name), ...machines.map(({ pool }) => pool)]);
  return [...names].flatMap((pool) =>
    PHASES.map((phase) => ({
      labels: { pool, phase },
      value: machines.filter((machine) => machine.pool === pool && machine.phase === phase).length,
    })),
  );
}

/** A source that was never read is as old as this process's time as driver, so that alerts have a series. */
function viewAges({ lastPass, leadingSince, now, regions, hasCluster }: GaugeInput) {
  const { regions: readAt = {}, cluster } = lastPass?.seenAt ?? {};
  const sources = [
    ...regions.map((region) => ({ source: 'proxmox', region, at: readAt[region] })),
    ...(hasCluster ? [{ source: 'kubernetes', region: '', at: cluster }] : []),
  ];
  return sources.flatMap(({ source, region, at = leadingSince }) =>
    at === undefined ? [] : [{ labels: { source, region }, value: (now - at) / 1_000 }],
  );
}
