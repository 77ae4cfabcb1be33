// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';
import type { Cluster } from '../../ports/cluster.ts';
import type { Hypervisor } from '../../ports/hypervisor.ts';
import type { Random } from '../../ports/random.ts';
import type { Store } from '../../ports/store.ts';
import type { CapacityForecast } from '../capacity/capacity-forecast.ts';
import type { RecordCache } from '../records/record-cache.ts';
import type { DriverRegistry } from './driver-lease.ts';
import type { FleetSettings } from './settings.ts';

export interface FleetOptions {
  readonly store: Store;
  readonly hypervisors: ReadonlyMap<string, Hypervisor>;
  /** The cluster that machines join. Without it, a machine whose guest is up is ready. */
  readonly cluster?: Cluster | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: FleetSettings;
  /** Told who drives, so that adapters can ask before they send something that changes the world. */
  readonly driverRegistry?: DriverRegistry | undefined;
}

/** The same with the records and the last views in memory, which everything of one process shares. */
export interface EngineOptions extends FleetOptions {
  readonly cache: RecordCache;
  readonly forecast: CapacityForecast;
}
