// SPDX-License-Identifier: Apache-2.0
import type { Lease } from '../model/lease.ts';
import { CapacityForecast, type ForecastReader } from './capacity/capacity-forecast.ts';
import { DriverState } from './context/driver-state.ts';
import type { FleetOptions } from './context/options.ts';
import { type PassReport, runPass } from './driver/reconcile-pass.ts';
import { type DriverOptions, runDriver } from './driver/run-driver.ts';
import type { PoolLimits } from './records/pool-limits.ts';
import { RecordCache } from './records/record-cache.ts';
import { listOrphans, type Orphan } from './recovery/list-orphans.ts';
import { createFleetClient, type FleetClient } from './requests/fleet-client.ts';
import { type FleetStatus, readStatus } from './requests/status.ts';

export interface Fleet extends FleetClient {
  /** For desks elsewhere, which must judge orders as this one does. */
  readonly poolLimits: Readonly<Record<string, PoolLimits>>;
  /** What the last rounds of this process saw, to read. */
  readonly forecast: ForecastReader & Pick<CapacityForecast, 'report' | 'onChange'>;
  status(): Promise<FleetStatus>;
  /** What has lost its counterpart, read from Proxmox and the records; nothing is changed. */
  orphans(): Promise<readonly Orphan[]>;
  /** One round under a lease that the caller holds. */
  reconcileOnce(lease: Lease, options?: { readonly signal?: AbortSignal }): Promise<PassReport>;
  /** Drives whenever nobody else does, until the signal. */
  runDriver(terms: DriverOptions): Promise<void>;
}

export function createFleet(options: FleetOptions): Fleet {
  const { store, settings } = options;
  const { pools } = settings;
  const cache = new RecordCache(store, (pool) => pools[pool]?.memoryOverheadBytes ?? 0);
  const forecast = new CapacityForecast();
  const engine = { ...options, cache, forecast };
  const state = new DriverState();
  return {
    ...createFleetClient({ ...options, pools }, cache),
    poolLimits: Object.fromEntries(
      Object.values(pools).map(({ name, limits, size }) => [name, { name, limits, size }]),
    ),
    forecast,
    status: () => readStatus(options, cache),
    orphans: () => listOrphans(options, cache),
    reconcileOnce: (lease, { signal } = {}) =>
      runPass(
        engine,
        { lease, mayAct: () => options.clock.now() < lease.expiresAt, signal },
        state,
      ),
    runDriver: (terms) => runDriver(engine, terms),
  };
}
