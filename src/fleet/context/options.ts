// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';
import type { Cluster } from '../../ports/cluster.ts';
import type { PvescalerError } from '../../ports/errors.ts';
import type { Hypervisor } from '../../ports/hypervisor.ts';
import type { Random } from '../../ports/random.ts';
import type { Store } from '../../ports/store.ts';
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
  /** Knows whether this process holds the lease; adapters check it before they send a changing request. */
  readonly driverRegistry?: DriverRegistry | undefined;
  /** Receives an unexpected exception, which ends or delays only the work on `subject`. */
  readonly onBug?: ((error: PvescalerError, subject: string) => void) | undefined;
}
