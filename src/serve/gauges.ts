// SPDX-License-Identifier: Apache-2.0
// Gauges that are computed from the records when metrics are scraped.
import type { FleetCapacity, FleetStatus, PassReport, PoolStatus } from '../fleet/index.ts';
import { type Machine, PHASES, type Phase } from '../model/machine.ts';
import type { Meters } from '../ports/meters.ts';

interface GaugeInput {
  readonly status: FleetStatus;
  /** Of this process; undefined before its first pass and on standby. */
  readonly lastPass: PassReport | undefined;
  /** Undefined before the first pass and on standby. */
  readonly capacity: FleetCapacity | undefined;
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
  meters.set('pvescaler_machine_phase_age_seconds', phaseAges(pools, machines, now));
  meters.set('pvescaler_intents_open', [{ labels: {}, value: openIntents }]);
  meters.set(
    'pvescaler_pool_target_size',
    pools.map(({ name, target }) => ({ labels: { pool: name }, value: target })),
  );
  meters.set(
    'pvescaler_pool_limit',
    pools.flatMap(({ name, limits: { min, max } }) => [
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
  setDriverGauges(meters, input);
}

/** What only the driver knows: from its last pass, and absent on standby. */
function setDriverGauges(meters: Meters, input: GaugeInput): void {
  const { lastPass, regions, leadingSince, capacity } = input;
  const pass = leadingSince === undefined ? undefined : lastPass;
  meters.set(
    'pvescaler_proxmox_credentials_refused',
    pass === undefined
      ? []
      : regions.map((region) => ({
          labels: { region },
          value: Number(pass.errors[region]?.class === 'Unauthorized'),
        })),
  );
  meters.set(
    'pvescaler_orphans',
    (pass?.orphans ?? []).map(({ region, kind, count }) => ({
      labels: { region, kind },
      value: count,
    })),
  );
  const hosts = mostFree(capacity);
  meters.set(
    'pvescaler_host_free_memory_bytes',
    hosts.map(({ labels, memoryBytes }) => ({ labels, value: memoryBytes })),
  );
  meters.set(
    'pvescaler_host_free_cpus',
    hosts.map(({ labels, cpus }) => ({ labels, value: cpus })),
  );
}

/** Pools differ in their reserve, their overcommit and the hosts that they may use. */
function mostFree(capacity: FleetCapacity | undefined) {
  return (capacity?.regions ?? []).flatMap(({ region, pools }) => {
    const byHost = Map.groupBy(
      pools.flatMap(({ hosts }) => hosts),
      ({ host }) => host,
    );
    return Array.from(byHost, ([host, offers]) => ({
      labels: { region, host },
      memoryBytes: Math.max(...offers.map(({ memoryBytes }) => memoryBytes)),
      cpus: Math.max(...offers.map(({ cpus }) => cpus)),
    }));
  });
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
  return poolNames(pools, machines).flatMap((pool) =>
    PHASES.map((phase) => ({
      labels: { pool, phase },
      value: machines.filter((machine) => machine.pool === pool && machine.phase === phase).length,
    })),
  );
}

function poolNames(pools: readonly PoolStatus[], machines: readonly Machine[]): readonly string[] {
  return [...new Set([...pools.map(({ name }) => name), ...machines.map(({ pool }) => pool)])];
}

/** A machine stays in the others until something new is requested. */
const PASSING_PHASES = PHASES.filter(
  (phase: Phase) => !['ready', 'kept', 'failed', 'gone'].includes(phase),
);

function phaseAges(pools: readonly PoolStatus[], machines: readonly Machine[], now: number) {
  const oldest = new Map<string, number>();
  for (const { pool, phase, phaseSince } of machines) {
    const key = `${pool} ${phase}`;
    oldest.set(key, Math.max(oldest.get(key) ?? 0, (now - phaseSince) / 1_000));
  }
  return poolNames(pools, machines).flatMap((pool) =>
    PASSING_PHASES.map((phase) => ({
      labels: { pool, phase },
      value: oldest.get(`${pool} ${phase}`) ?? 0,
    })),
  );
}

/** A source that was never read is as old as this process's time as driver, so that alerts have a series. */
function viewAges({ lastPass, leadingSince, now, regions, hasCluster }: GaugeInput) {
  // A process that drives no more does not read any more.
  if (leadingSince === undefined) return [];
  const { regions: readAt = {}, cluster } = lastPass?.seenAt ?? {};
  const sources = [
    ...regions.map((region) => ({ source: 'proxmox', region, at: readAt[region] })),
    ...(hasCluster ? [{ source: 'kubernetes', region: '', at: cluster }] : []),
  ];
  return sources.map(({ source, region, at = leadingSince }) => ({
    labels: { source, region },
    value: (now - at) / 1_000,
  }));
}
